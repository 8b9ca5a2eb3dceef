/* SPDX-License-Identifier: MIT */
/* From bytes to a snapshot. The size that a header tells is compared with the bytes there are
 * before it decides about memory. */
#include "stats/snapshot_file.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "base/range.h"

typedef struct unpacker {
    const char *what;
    const uint8_t *bytes;
    size_t size;
    size_t at;        /* the next byte */
    size_t unchecked; /* the first byte that no checksum was compared for */
    uint32_t crc;
    eplb_snapshot_header header;
} unpacker;

static uint64_t get(unpacker *u, size_t size)
{
    const uint8_t *next = u->bytes + u->at;
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        value |= (uint64_t)next[i] << 8 * i;
    }
    u->at += size;
    return value;
}

static uint32_t get_32(unpacker *u)
{
    return (uint32_t)get(u, 4);
}

static uint64_t get_64(unpacker *u)
{
    return get(u, 8);
}

/* Compares the checksum that comes next; `part` names what it covers. */
static eplb_status get_checksum(unpacker *u, const char *part, eplb_error *error)
{
    size_t offset = u->at;
    u->crc = eplb_crc32c(u->crc, u->bytes + u->unchecked, offset - u->unchecked);
    uint32_t stored = get_32(u);
    if (stored != u->crc) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: byte %zu: %s: bytes %zu to %zu give the checksum %08" PRIx32
                              ", the one here is %08" PRIx32,
                              u->what, offset, part, u->unchecked, offset - 1, u->crc, stored);
    }
    u->unchecked = u->at;
    return EPLB_OK;
}

static eplb_status too_short(const unpacker *u, size_t expected, eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_PARSE,
                          "%s: byte %zu: the snapshot ends too early: at least %zu bytes expected",
                          u->what, u->size, expected);
}

static eplb_status check_magic(const unpacker *u, eplb_error *error)
{
    for (size_t i = 0; i < EPLB_SNAPSHOT_MAGIC_SIZE && i < u->size; i++) {
        uint8_t expected = (uint8_t)EPLB_SNAPSHOT_MAGIC[i];
        if (u->bytes[i] != expected) {
            return eplb_error_set(error, EPLB_ERROR_PARSE,
                                  "%s: byte %zu: 0x%02x, expected 0x%02x: not a snapshot", u->what,
                                  i, u->bytes[i], expected);
        }
    }
    return EPLB_OK;
}

/* Reads what all versions have in common. */
static eplb_status get_version(unpacker *u, eplb_error *error)
{
    eplb_status status = check_magic(u, error);
    if (status == EPLB_OK && u->size < EPLB_AT_LAYERS) {
        status = too_short(u, EPLB_AT_LAYERS, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    u->at = EPLB_AT_VERSION;
    uint32_t version = get_32(u);
    status = get_checksum(u, "version", error);
    if (status == EPLB_OK && version > EPLB_SNAPSHOT_VERSION) {
        status = eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                                "%s: byte %d: snapshot version %" PRIu32
                                ": this library reads version %d",
                                u->what, EPLB_AT_VERSION, version, EPLB_SNAPSHOT_VERSION);
    } else if (status == EPLB_OK && version == 0) {
        status = eplb_error_set(error, EPLB_ERROR_PARSE, "%s: byte %d: snapshot version 0", u->what,
                                EPLB_AT_VERSION);
    }
    return status;
}

/* Of a header in range. The ids and the name are not set. */
static eplb_window_shape shape_of(const eplb_snapshot_header *h)
{
    return (eplb_window_shape){.layers = (int32_t)h->layers,
                               .experts = (int32_t)h->experts,
                               .rank = (int32_t)h->rank,
                               .ranks = (int32_t)h->ranks,
                               .steps_per_bucket = (int32_t)h->steps_per_bucket,
                               .model_layers = (int32_t)h->model_layers};
}

static eplb_status check_size(const unpacker *u, eplb_error *error)
{
    const eplb_snapshot_header *h = &u->header;
    eplb_window_shape shape = shape_of(h);
    size_t size = SIZE_MAX;
    if (h->name_size > u->size ||
        !eplb_snapshot_file_size(&shape, (int32_t)h->buckets, (size_t)h->name_size, &size) ||
        size > u->size) {
        return too_short(u, size, error);
    }
    return size == u->size ? EPLB_OK
                           : eplb_error_set(error, EPLB_ERROR_PARSE,
                                            "%s: byte %zu: %zu bytes behind the snapshot", u->what,
                                            size, u->size - size);
}

static eplb_status get_header(unpacker *u, eplb_error *error)
{
    if (u->size < EPLB_AT_LAYER_IDS) {
        return too_short(u, EPLB_AT_LAYER_IDS, error);
    }
    eplb_snapshot_header *h = &u->header;
    h->layers = get_32(u);
    h->experts = get_32(u);
    h->rank = get_32(u);
    h->ranks = get_32(u);
    h->steps_per_bucket = get_32(u);
    h->model_layers = get_32(u);
    h->buckets = get_32(u);
    h->first_bucket = get_64(u);
    h->steps = get_64(u);
    h->name_size = get_64(u);
    eplb_status status = get_checksum(u, "header", error);
    if (status == EPLB_OK) {
        status = eplb_snapshot_check_header(h, u->what, error);
    }
    return status == EPLB_OK ? check_size(u, error) : status;
}

static eplb_status get_layer_ids(unpacker *u, int32_t *ids, eplb_error *error)
{
    uint64_t model_layers = u->header.model_layers;
    uint64_t end = model_layers > 0 ? model_layers : EPLB_MAX_LAYERS;
    for (int32_t l = 0; l < (int32_t)u->header.layers; l++) {
        size_t offset = u->at;
        uint32_t id = get_32(u);
        if (id >= end) {
            return eplb_error_set(error, EPLB_ERROR_PARSE,
                                  "%s: byte %zu: row %d: layer id %" PRIu32 " not in 0..%" PRIu64,
                                  u->what, offset, l, id, end - 1);
        }
        ids[l] = (int32_t)id;
        if (l > 0 && ids[l] <= ids[l - 1]) {
            return eplb_error_set(error, EPLB_ERROR_PARSE,
                                  "%s: byte %zu: row %d: layer id %d does not follow %d in order",
                                  u->what, offset, l, ids[l], ids[l - 1]);
        }
    }
    return EPLB_OK;
}

static eplb_status get_held_ranks(unpacker *u, uint8_t *held, eplb_error *error)
{
    size_t offset = u->at;
    size_t own = (size_t)u->header.rank;
    for (size_t rank = 0; rank < u->header.ranks; rank++) {
        held[rank] = u->bytes[u->at++];
        if (held[rank] > 1) {
            return eplb_error_set(error, EPLB_ERROR_PARSE,
                                  "%s: byte %zu: rank %zu: %d is neither 0 nor 1", u->what,
                                  offset + rank, rank, held[rank]);
        }
    }
    return held[own] == 1
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_PARSE,
                                "%s: byte %zu: taken on rank %zu, but without its counts", u->what,
                                offset + own, own);
}

/* The name stays where it is; NULL when there is none. */
static eplb_status get_name(unpacker *u, const char **name, eplb_error *error)
{
    size_t size = (size_t)u->header.name_size;
    size_t offset = u->at;
    const char *text = (const char *)u->bytes + offset;
    u->at += size;
    *name = size > 0 ? text : NULL;
    return size == 0 || memchr(text, 0, size) == text + size - 1
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_PARSE,
                                "%s: byte %zu: a name of %zu bytes whose last is not its only NUL",
                                u->what, offset, size);
}

/* Checks the checksum of what is before the buckets first: a damaged list is that, whatever it
 * says. */
static eplb_status check_lists(unpacker *u, eplb_error *error)
{
    const eplb_snapshot_header *h = &u->header;
    size_t start = u->at;
    u->at += (size_t)(4 * h->layers + h->ranks + h->name_size);
    eplb_status status = get_checksum(u, "layers, ranks and name", error);
    u->at = start;
    return status;
}

/* Reads the lists into a new snapshot; ids [layers] and held [ranks] are scratch. */
static eplb_status get_lists(unpacker *u, eplb_snapshot **out, const eplb_hooks *hooks,
                             int32_t *ids, uint8_t *held, eplb_error *error)
{
    eplb_window_shape shape = shape_of(&u->header);
    shape.layer_ids = ids;
    eplb_status status = check_lists(u, error);
    if (status == EPLB_OK) {
        status = get_layer_ids(u, ids, error);
    }
    if (status == EPLB_OK) {
        status = get_held_ranks(u, held, error);
    }
    if (status == EPLB_OK) {
        status = get_name(u, &shape.name, error);
    }
    if (status == EPLB_OK) {
        status = eplb_snapshot_create(out, hooks, &shape, (int32_t)u->header.buckets, error);
    }
    if (status == EPLB_OK) {
        memcpy((*out)->held, held, (size_t)shape.ranks);
        (*out)->first_bucket = (int64_t)u->header.first_bucket;
        (*out)->steps = (int64_t)u->header.steps;
        u->at = u->unchecked;
    }
    return status;
}

static eplb_status create(unpacker *u, eplb_snapshot **out, const eplb_hooks *hooks,
                          eplb_error *error)
{
    int32_t *ids = eplb_alloc(hooks, (size_t)u->header.layers, sizeof(*ids));
    uint8_t *held = eplb_alloc(hooks, (size_t)u->header.ranks, sizeof(*held));
    eplb_status status = ids != NULL && held != NULL ? get_lists(u, out, hooks, ids, held, error)
                                                     : eplb_out_of_memory(error);
    eplb_free(hooks, ids);
    eplb_free(hooks, held);
    return status;
}

static eplb_status get_bucket(unpacker *u, eplb_snapshot *snapshot, int32_t index,
                              eplb_error *error)
{
    char bucket[40];
    snprintf(bucket, sizeof(bucket), "bucket %" PRId64, snapshot->first_bucket + index);
    char place[EPLB_ERROR_MESSAGE_SIZE];
    snprintf(place, sizeof(place), "%s: byte %zu: %s", u->what, u->at, bucket);
    size_t words = eplb_window_step_words(&snapshot->shape);
    size_t cells = eplb_snapshot_cells(snapshot);
    for (size_t i = 0; i < words; i++) {
        snapshot->bucket_steps[(size_t)index * words + i] = get_64(u);
    }
    snapshot->dropped[index] = get_64(u);
    for (size_t i = 0; i < cells; i++) {
        snapshot->sums[(size_t)index * cells + i] = get_64(u);
    }
    eplb_status status = get_checksum(u, bucket, error);
    return status == EPLB_OK ? eplb_snapshot_check_bucket(snapshot, index, place, error) : status;
}

eplb_status eplb_snapshot_decode(eplb_snapshot **out, const eplb_hooks *hooks, const char *what,
                                 const uint8_t *bytes, size_t size, eplb_error *error)
{
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    unpacker u = {.what = what, .bytes = bytes, .size = size};
    eplb_snapshot *snapshot = NULL;
    eplb_status status = get_version(&u, error);
    if (status == EPLB_OK) {
        status = get_header(&u, error);
    }
    if (status == EPLB_OK) {
        status = create(&u, &snapshot, &resolved, error);
    }
    for (int32_t i = 0; status == EPLB_OK && i < snapshot->buckets; i++) {
        status = get_bucket(&u, snapshot, i, error);
    }
    if (status != EPLB_OK) {
        eplb_snapshot_destroy(&snapshot);
        return status;
    }
    *out = snapshot;
    return EPLB_OK;
}

eplb_status eplb_snapshot_unpack(eplb_snapshot **out, const eplb_hooks *hooks, const uint8_t *bytes,
                                 size_t size, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    eplb_status status = eplb_check_given("unpack", "output", out, error);
    if (status == EPLB_OK) {
        status = eplb_check_given("unpack", "bytes", bytes, error);
    }
    return status == EPLB_OK ? eplb_snapshot_decode(out, hooks, "snapshot", bytes, size, error)
                             : status;
}
