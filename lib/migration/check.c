/* SPDX-License-Identifier: MIT */
/* Carries a schedule out with tags instead of weights. It reads rounds as a caller does and shares
 * nothing with what makes them. */
#include <eplb/migration.h>

#include <stdbool.h>

#include "base/range.h"
#include "migration/schedule.h"
#include "model/placement.h"

typedef struct proof {
    const eplb_migration *migration;
    const eplb_placement *from;
    const eplb_placement *to;
    const eplb_cluster *cluster;
    int64_t index; /* of the round */
    int32_t layer_id;
    eplb_round round;
    int32_t copies_left; /* that the round may make beside local ones; -1: no limit */
    bool allows_twins;   /* a placement has an expert twice on a GPU */
    int32_t *gpu;        /* [slots] */
    int32_t *tag;        /* [slots] expert whose weights are there; -1: nothing of use */
    int32_t *map;        /* [slots] in force */
    int32_t *row;        /* [slots] of the new placement, once the layer has begun */
    int32_t *staged;     /* [slots] expert in a buffer that goes there; -1: none */
    int32_t *staged_as;  /* [slots] and which buffer slot of the GPU that is */
    bool *is_written;    /* [slots] in this round */
    int32_t *seen;       /* [experts] */
    bool *is_needed;     /* [experts] has been in the map */
    int32_t *sent;       /* [GPUs] in this round */
    int32_t *received;
} proof;

static eplb_status init(proof *p, const eplb_migration *migration, const eplb_placement *from,
                        const eplb_placement *to, eplb_error *error)
{
    size_t slots = (size_t)migration->slots;
    size_t experts = (size_t)migration->experts;
    size_t gpus = (size_t)migration->cluster->gpus;
    *p = (proof){.migration = migration, .from = from, .to = to, .cluster = migration->cluster};
    const eplb_array arrays[] = {
        EPLB_ARRAY(p->gpu, slots),         EPLB_ARRAY(p->tag, slots),
        EPLB_ARRAY(p->map, slots),         EPLB_ARRAY(p->row, slots),
        EPLB_ARRAY(p->staged, slots),      EPLB_ARRAY(p->staged_as, slots),
        EPLB_ARRAY(p->is_written, slots),  EPLB_ARRAY(p->seen, experts),
        EPLB_ARRAY(p->is_needed, experts), EPLB_ARRAY(p->sent, gpus),
        EPLB_ARRAY(p->received, gpus),
    };
    eplb_status status =
        eplb_alloc_arrays(&migration->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
    for (int32_t g = 0; g < p->cluster->gpus && status == EPLB_OK; g++) {
        for (int32_t s = p->cluster->first_slot[g]; s < p->cluster->first_slot[g + 1]; s++) {
            p->gpu[s] = g;
        }
    }
    return status;
}

static void free_arrays(proof *p)
{
    void *arrays[] = {p->gpu,        p->tag,  p->map,       p->row,  p->staged,  p->staged_as,
                      p->is_written, p->seen, p->is_needed, p->sent, p->received};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(&p->migration->hooks, arrays[i]);
    }
}

/* A fault of the round, or of a slot in it. */
static eplb_status fault(const proof *p, const char *text, eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_DATA, "round %lld (layer %d): %s", (long long)p->index,
                          p->layer_id, text);
}

static eplb_status slot_fault(const proof *p, int32_t slot, const char *text, eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_DATA, "round %lld (layer %d): slot %d of GPU %d %s",
                          (long long)p->index, p->layer_id, slot, p->gpu[slot], text);
}

/* What exists of a placement's row, in the numbers of the maps. */
static void read_row(proof *p, const eplb_placement *placement, int32_t layer)
{
    const int32_t *row = eplb_placement_row(placement, layer);
    for (int32_t s = 0; s < p->migration->slots; s++) {
        int32_t gpu = p->gpu[s];
        int32_t place = s - eplb_cluster_first_slot(p->cluster, gpu);
        bool exists = place < eplb_placement_open_slots_on(placement, layer, gpu) &&
                      eplb_cluster_gpu_alive(p->cluster, gpu) &&
                      eplb_cluster_gpu_alive(eplb_placement_cluster(placement), gpu);
        p->row[s] =
            exists ? row[eplb_cluster_first_slot(eplb_placement_cluster(placement), gpu) + place]
                   : -1;
    }
}

/* A slot of a map with an expert that another slot of the GPU has; -1: there is none. */
static int32_t find_twin(proof *p, const int32_t *map)
{
    for (int32_t e = 0; e < p->migration->experts; e++) {
        p->seen[e] = -1;
    }
    for (int32_t s = 0; s < p->migration->slots; s++) {
        if (map[s] >= 0 && p->seen[map[s]] == p->gpu[s]) {
            return s;
        }
        if (map[s] >= 0) {
            p->seen[map[s]] = p->gpu[s];
        }
    }
    return -1;
}

static eplb_status start_layer(proof *p, int32_t layer, eplb_error *error)
{
    const int32_t *start = eplb_migration_start_map(p->migration, layer);
    p->layer_id = eplb_placement_layer_ids(p->to)[layer];
    read_row(p, p->to, layer);
    p->allows_twins = find_twin(p, p->row) >= 0;
    read_row(p, p->from, layer);
    p->allows_twins = p->allows_twins || find_twin(p, p->row) >= 0;
    memset(p->is_needed, 0, (size_t)p->migration->experts * sizeof(*p->is_needed));
    for (int32_t s = 0; s < p->migration->slots; s++) {
        if (start[s] != p->row[s]) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "layer %d: slot %d of GPU %d starts with expert %d, in the old "
                                  "placement it has %d",
                                  p->layer_id, s, p->gpu[s], start[s], p->row[s]);
        }
        p->tag[s] = start[s];
        p->map[s] = start[s];
        p->staged[s] = -1;
        if (start[s] >= 0) {
            p->is_needed[start[s]] = true;
        }
    }
    read_row(p, p->to, layer);
    return EPLB_OK;
}

/* Every token finds its expert, and the right weights. */
static eplb_status check_map(proof *p, const int32_t *map, eplb_error *error)
{
    int32_t twin = p->allows_twins ? -1 : find_twin(p, map);
    if (twin >= 0) {
        return slot_fault(p, twin, "has an expert that the GPU has already", error);
    }
    memset(p->seen, 0, (size_t)p->migration->experts * sizeof(*p->seen));
    for (int32_t s = 0; s < p->migration->slots; s++) {
        if (map[s] >= 0 && map[s] != p->tag[s]) {
            return slot_fault(p, s, "is in the map for an expert that it does not hold", error);
        }
        if (map[s] >= 0) {
            p->seen[map[s]] = 1;
            p->is_needed[map[s]] = true;
        }
    }
    for (int32_t e = 0; e < p->migration->experts; e++) {
        if (p->is_needed[e] && !p->seen[e]) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "round %lld (layer %d): expert %d is in no slot of the map",
                                  (long long)p->index, p->layer_id, e);
        }
    }
    return EPLB_OK;
}

static bool is_held(const proof *p, int32_t expert)
{
    for (int32_t s = 0; s < p->migration->slots; s++) {
        if (p->tag[s] == expert) {
            return true;
        }
    }
    return false;
}

static int32_t kind_of(const proof *p, const eplb_copy *copy)
{
    if (copy->source_gpu < 0) {
        return EPLB_COPY_STORAGE;
    }
    if (copy->source_gpu == copy->gpu) {
        return EPLB_COPY_LOCAL;
    }
    return eplb_cluster_gpu_node(p->cluster, copy->source_gpu) ==
                   eplb_cluster_gpu_node(p->cluster, copy->gpu)
               ? EPLB_COPY_NODE
               : EPLB_COPY_REMOTE;
}

static eplb_status check_source(const proof *p, const eplb_copy *copy, eplb_error *error)
{
    if (copy->source_gpu < 0) {
        return copy->source == EPLB_COPY_STORAGE && !is_held(p, copy->expert)
                   ? EPLB_OK
                   : slot_fault(p, copy->slot, "is read from storage without need", error);
    }
    int32_t slot = copy->source_slot;
    if (slot < 0 || slot >= p->migration->slots || p->gpu[slot] != copy->source_gpu ||
        copy->source != kind_of(p, copy)) {
        return slot_fault(p, copy->slot, "is copied from a slot that is not what it is said to be",
                          error);
    }
    if (p->is_written[slot]) {
        return slot_fault(p, copy->slot, "is copied from a slot that is written", error);
    }
    return p->tag[slot] == copy->expert
               ? EPLB_OK
               : slot_fault(p, copy->slot, "is copied from a slot with another expert", error);
}

static eplb_status check_buffer(const proof *p, const eplb_copy *copy, eplb_error *error)
{
    int32_t most = p->migration->options.buffer_slots;
    if (copy->buffer < 0) {
        return p->migration->options.mode == EPLB_MIGRATION_IN_PLACE
                   ? EPLB_OK
                   : slot_fault(p, copy->slot, "is written while it is in use", error);
    }
    if (most >= 0 && copy->buffer >= most) {
        return slot_fault(p, copy->slot, "takes more buffer slots than there are", error);
    }
    int32_t end = eplb_cluster_first_slot(p->cluster, copy->gpu) +
                  eplb_cluster_gpu_slots(p->cluster, copy->gpu);
    for (int32_t s = eplb_cluster_first_slot(p->cluster, copy->gpu); s < end; s++) {
        if (p->staged[s] >= 0 && p->staged_as[s] == copy->buffer) {
            return slot_fault(p, copy->slot, "takes a buffer slot that is in use", error);
        }
    }
    return EPLB_OK;
}

static eplb_status check_copy(const proof *p, const eplb_copy *copy, eplb_error *error)
{
    if (copy->layer != p->round.layer || copy->slot < 0 || copy->slot >= p->migration->slots ||
        p->gpu[copy->slot] != copy->gpu || copy->expert < 0 ||
        copy->expert >= p->migration->experts || !eplb_cluster_gpu_alive(p->cluster, copy->gpu)) {
        return fault(p, "a copy goes where there is no slot for it", error);
    }
    eplb_status status = check_source(p, copy, error);
    return status == EPLB_OK ? check_buffer(p, copy, error) : status;
}

static bool exceeds(int32_t count, int32_t most)
{
    return most >= 0 && count > most;
}

static eplb_status check_limits(proof *p, eplb_error *error)
{
    const eplb_migration_options *options = &p->migration->options;
    int32_t count = 0;
    memset(p->sent, 0, (size_t)p->cluster->gpus * sizeof(*p->sent));
    memset(p->received, 0, (size_t)p->cluster->gpus * sizeof(*p->received));
    for (int32_t i = 0; i < p->round.copy_count; i++) {
        const eplb_copy *copy = &p->round.copies[i];
        if (copy->source == EPLB_COPY_LOCAL) {
            continue;
        }
        count++;
        if (exceeds(count, options->max_copies) ||
            exceeds(++p->received[copy->gpu], options->max_receives) ||
            (copy->source_gpu >= 0 && exceeds(++p->sent[copy->source_gpu], options->max_sends))) {
            return slot_fault(p, copy->slot, "is one copy more than the limits allow", error);
        }
    }
    return EPLB_OK;
}

/* Marks what the round writes, so that the order of its copies does not matter. */
static eplb_status mark_writes(proof *p, eplb_error *error)
{
    memset(p->is_written, 0, (size_t)p->migration->slots * sizeof(*p->is_written));
    for (int32_t i = 0; i < p->round.copy_count; i++) {
        const eplb_copy *copy = &p->round.copies[i];
        if (copy->slot < 0 || copy->slot >= p->migration->slots) {
            return fault(p, "a copy goes where there is no slot for it", error);
        }
        if (p->is_written[copy->slot] || p->staged[copy->slot] >= 0) {
            return slot_fault(p, copy->slot, "is written twice", error);
        }
        p->is_written[copy->slot] = copy->buffer < 0;
    }
    return EPLB_OK;
}

/* While the copies run, the map is as before but for the slots that are written. */
static eplb_status check_during(proof *p, eplb_error *error)
{
    for (int32_t s = 0; s < p->migration->slots; s++) {
        if (p->is_written[s] && p->round.map_during[s] >= 0) {
            return slot_fault(p, s, "is in the map while it is written", error);
        }
        if (!p->is_written[s] && p->round.map_during[s] != p->map[s]) {
            return slot_fault(p, s, "is not in the map as it was before the round", error);
        }
    }
    return check_map(p, p->round.map_during, error);
}

static eplb_status make_copies(proof *p, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t i = 0; i < p->round.copy_count && status == EPLB_OK; i++) {
        const eplb_copy *copy = &p->round.copies[i];
        status = check_copy(p, copy, error);
        if (status == EPLB_OK && copy->buffer >= 0) {
            p->staged[copy->slot] = copy->expert;
            p->staged_as[copy->slot] = copy->buffer;
        }
    }
    for (int32_t i = 0; i < p->round.copy_count && status == EPLB_OK; i++) {
        const eplb_copy *copy = &p->round.copies[i];
        p->tag[copy->slot] = copy->buffer < 0 ? copy->expert : p->tag[copy->slot];
        p->is_written[copy->slot] = false;
    }
    return status;
}

static void commit(proof *p)
{
    for (int32_t s = 0; s < p->migration->slots; s++) {
        if (p->staged[s] >= 0) {
            p->tag[s] = p->staged[s];
            p->staged[s] = -1;
        }
    }
}

/* An engine that cannot route around a slot never has to, but where it is to be empty. */
static eplb_status check_after(const proof *p, eplb_error *error)
{
    bool is_staged = p->migration->options.mode == EPLB_MIGRATION_STAGED;
    for (int32_t s = 0; is_staged && s < p->migration->slots; s++) {
        if (p->map[s] >= 0 && p->round.map_after[s] < 0 && p->row[s] >= 0) {
            return slot_fault(p, s, "leaves the map before its time", error);
        }
    }
    return EPLB_OK;
}

static eplb_status check_round(proof *p, eplb_error *error)
{
    eplb_status status = mark_writes(p, error);
    if (status == EPLB_OK) {
        status = check_during(p, error);
    }
    if (status == EPLB_OK) {
        status = check_limits(p, error);
    }
    if (status == EPLB_OK) {
        status = make_copies(p, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    if (p->round.commit) {
        commit(p);
    }
    status = check_after(p, error);
    if (status != EPLB_OK) {
        return status;
    }
    memcpy(p->map, p->round.map_after, (size_t)p->migration->slots * sizeof(*p->map));
    return check_map(p, p->map, error);
}

static eplb_status check_end(const proof *p, eplb_error *error)
{
    for (int32_t s = 0; s < p->migration->slots; s++) {
        if (p->map[s] != p->row[s]) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "layer %d: slot %d of GPU %d ends with expert %d, in the new "
                                  "placement it has %d",
                                  p->layer_id, s, p->gpu[s], p->map[s], p->row[s]);
        }
    }
    return EPLB_OK;
}

static eplb_status check_layer(proof *p, int32_t layer, eplb_error *error)
{
    int64_t first = 0;
    int64_t count = 0;
    eplb_status status = start_layer(p, layer, error);
    if (status == EPLB_OK) {
        status = eplb_migration_layer_rounds(p->migration, layer, &first, &count, error);
    }
    for (p->index = first; p->index < first + count && status == EPLB_OK; p->index++) {
        p->round = (eplb_round){.struct_size = sizeof(p->round)};
        status = eplb_migration_get_round(p->migration, p->index, &p->round, error);
        if (status == EPLB_OK && p->round.layer != layer) {
            status = fault(p, "it is among the rounds of another layer", error);
        }
        if (status == EPLB_OK) {
            status = check_round(p, error);
        }
    }
    return status == EPLB_OK ? check_end(p, error) : status;
}

static bool matches(const eplb_migration *migration, const eplb_placement *placement)
{
    return placement->layers == migration->layers && placement->experts == migration->experts &&
           placement->cluster->gpus == migration->cluster->gpus;
}

eplb_status eplb_migration_check(const eplb_migration *migration, const eplb_placement *from,
                                 const eplb_placement *to, eplb_error *error)
{
    eplb_status status = eplb_check_given("migration", "schedule", migration, error);
    if (status == EPLB_OK) {
        status = eplb_check_given("migration", "old placement", from, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_given("migration", "new placement", to, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    if (!matches(migration, from) || !matches(migration, to)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "migration: the schedule is of %d layers of %d experts on %d GPUs, "
                              "not these placements'",
                              migration->layers, migration->experts, migration->cluster->gpus);
    }
    proof p;
    status = init(&p, migration, from, to, error);
    for (int32_t l = 0; l < migration->layers && status == EPLB_OK; l++) {
        status = check_layer(&p, l, error);
    }
    free_arrays(&p);
    return status;
}
