/* SPDX-License-Identifier: MIT */
#include "stats/snapshot_file.h"

#include "base/crc32c.h"
#include "base/memory.h"
#include "base/range.h"

typedef struct packer {
    uint8_t *next;
    const uint8_t *unchecked; /* what the next checksum adds to the last one */
    uint32_t crc;
} packer;

/* Low bytes first, whatever the host's order. */
static void put(packer *p, uint64_t value, size_t size)
{
    uint8_t *next = p->next;
    for (size_t i = 0; i < size; i++) {
        next[i] = (uint8_t)(value >> 8 * i);
    }
    p->next = next + size;
}

static void put_32(packer *p, uint32_t value)
{
    put(p, value, 4);
}

static void put_64(packer *p, uint64_t value)
{
    put(p, value, 8);
}

static void put_bytes(packer *p, const void *bytes, size_t size)
{
    memcpy(p->next, bytes, size);
    p->next += size;
}

static void put_checksum(packer *p)
{
    p->crc = eplb_crc32c(p->crc, p->unchecked, (size_t)(p->next - p->unchecked));
    put_32(p, p->crc);
    p->unchecked = p->next;
}

static void put_header(packer *p, const eplb_snapshot *snapshot, size_t name_size)
{
    const eplb_window_shape *shape = &snapshot->shape;
    put_bytes(p, EPLB_SNAPSHOT_MAGIC, EPLB_SNAPSHOT_MAGIC_SIZE);
    put_32(p, EPLB_SNAPSHOT_VERSION);
    put_checksum(p);
    put_32(p, (uint32_t)shape->layers);
    put_32(p, (uint32_t)shape->experts);
    put_32(p, (uint32_t)shape->rank);
    put_32(p, (uint32_t)shape->ranks);
    put_32(p, (uint32_t)shape->steps_per_bucket);
    put_32(p, (uint32_t)shape->model_layers);
    put_32(p, (uint32_t)snapshot->buckets);
    put_64(p, (uint64_t)snapshot->first_bucket);
    put_64(p, (uint64_t)snapshot->steps);
    put_64(p, name_size);
    put_checksum(p);
}

static void put_lists(packer *p, const eplb_snapshot *snapshot, size_t name_size)
{
    const eplb_window_shape *shape = &snapshot->shape;
    for (int32_t l = 0; l < shape->layers; l++) {
        put_32(p, (uint32_t)shape->layer_ids[l]);
    }
    put_bytes(p, snapshot->held, (size_t)shape->ranks);
    if (name_size > 0) {
        put_bytes(p, shape->name, name_size);
    }
    put_checksum(p);
}

static void put_bucket(packer *p, const eplb_snapshot *snapshot, int32_t index)
{
    size_t words = eplb_window_step_words(&snapshot->shape);
    size_t cells = eplb_snapshot_cells(snapshot);
    for (size_t i = 0; i < words; i++) {
        put_64(p, snapshot->bucket_steps[(size_t)index * words + i]);
    }
    put_64(p, snapshot->dropped[index]);
    for (size_t i = 0; i < cells; i++) {
        put_64(p, snapshot->sums[(size_t)index * cells + i]);
    }
    put_checksum(p);
}

static eplb_status check_arguments(const eplb_snapshot *snapshot, uint8_t **bytes,
                                   const size_t *size, eplb_error *error)
{
    eplb_status status = eplb_check_given("pack", "snapshot", snapshot, error);
    if (status == EPLB_OK) {
        status = eplb_check_given("pack", "output", bytes, error);
    }
    return status == EPLB_OK ? eplb_check_given("pack", "size", size, error) : status;
}

eplb_status eplb_snapshot_pack(const eplb_snapshot *snapshot, const eplb_hooks *hooks,
                               uint8_t **bytes, size_t *size, eplb_error *error)
{
    if (bytes != NULL) {
        *bytes = NULL;
    }
    eplb_status status = check_arguments(snapshot, bytes, size, error);
    if (status != EPLB_OK) {
        return status;
    }
    const char *name = snapshot->shape.name;
    size_t name_size = name != NULL ? strlen(name) + 1 : 0;
    size_t total;
    if (!eplb_snapshot_file_size(&snapshot->shape, snapshot->buckets, name_size, &total)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW, "pack: the size overflows");
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    uint8_t *packed = eplb_alloc(&resolved, total, 1);
    if (packed == NULL) {
        return eplb_out_of_memory(error);
    }
    packer p = {.next = packed, .unchecked = packed};
    put_header(&p, snapshot, name_size);
    put_lists(&p, snapshot, name_size);
    for (int32_t i = 0; i < snapshot->buckets; i++) {
        put_bucket(&p, snapshot, i);
    }
    *bytes = packed;
    *size = total;
    return EPLB_OK;
}
