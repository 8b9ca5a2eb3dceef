/* SPDX-License-Identifier: MIT */
#include "stats/snapshot.h"

#include "base/memory.h"
#include "base/range.h"

static eplb_status allocate(eplb_snapshot *snapshot, eplb_error *error)
{
    const eplb_hooks *hooks = &snapshot->hooks;
    size_t buckets = (size_t)snapshot->buckets;
    size_t cells;
    if (!eplb_size_mul(eplb_snapshot_cells(snapshot), buckets, &cells)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW, "snapshot: its size overflows");
    }
    size_t words = buckets * eplb_window_step_words(&snapshot->shape);
    snapshot->sums = eplb_alloc_zeroed(hooks, cells, sizeof(*snapshot->sums));
    snapshot->dropped = eplb_alloc_zeroed(hooks, buckets, sizeof(*snapshot->dropped));
    snapshot->bucket_steps = eplb_alloc_zeroed(hooks, words, sizeof(*snapshot->bucket_steps));
    snapshot->held = eplb_alloc_zeroed(hooks, (size_t)snapshot->shape.ranks, 1);
    bool complete = snapshot->sums != NULL && snapshot->dropped != NULL &&
                    snapshot->bucket_steps != NULL && snapshot->held != NULL;
    return complete ? EPLB_OK : eplb_out_of_memory(error);
}

eplb_status eplb_snapshot_create(eplb_snapshot **out, const eplb_hooks *hooks,
                                 const eplb_window_shape *shape, int32_t buckets, eplb_error *error)
{
    *out = NULL;
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_snapshot *snapshot = eplb_alloc_zeroed(&resolved, 1, sizeof(*snapshot));
    if (snapshot == NULL) {
        return eplb_out_of_memory(error);
    }
    snapshot->hooks = resolved;
    snapshot->buckets = buckets;
    eplb_status status = eplb_window_shape_copy(&snapshot->shape, &resolved, shape, error);
    if (status == EPLB_OK) {
        status = allocate(snapshot, error);
    }
    if (status != EPLB_OK) {
        eplb_snapshot_destroy(&snapshot);
        return status;
    }
    snapshot->held[shape->rank] = 1;
    *out = snapshot;
    return EPLB_OK;
}

void eplb_snapshot_destroy(eplb_snapshot **snapshot)
{
    if (snapshot == NULL || *snapshot == NULL) {
        return;
    }
    eplb_snapshot *self = *snapshot;
    eplb_hooks hooks = self->hooks;
    eplb_window_shape_free(&self->shape, &hooks);
    eplb_free(&hooks, self->sums);
    eplb_free(&hooks, self->dropped);
    eplb_free(&hooks, self->bucket_steps);
    eplb_free(&hooks, self->held);
    eplb_free(&hooks, self);
    *snapshot = NULL;
}

const char *eplb_snapshot_name(const eplb_snapshot *snapshot)
{
    return snapshot->shape.name;
}

const int32_t *eplb_snapshot_layer_ids(const eplb_snapshot *snapshot)
{
    return snapshot->shape.layer_ids;
}

static bool has_bucket(const eplb_snapshot *snapshot, int64_t bucket)
{
    return bucket >= snapshot->first_bucket && bucket - snapshot->first_bucket < snapshot->buckets;
}

const uint64_t *eplb_snapshot_row(const eplb_snapshot *snapshot, int64_t bucket, int32_t layer)
{
    if (!has_bucket(snapshot, bucket) || layer < 0 || layer >= snapshot->shape.layers) {
        return NULL;
    }
    return snapshot->sums +
           (size_t)(bucket - snapshot->first_bucket) * eplb_snapshot_cells(snapshot) +
           (size_t)layer * (size_t)snapshot->shape.experts;
}

int64_t eplb_snapshot_filled_steps(const eplb_snapshot *snapshot, int64_t bucket)
{
    if (!has_bucket(snapshot, bucket)) {
        return 0;
    }
    size_t words = eplb_window_step_words(&snapshot->shape);
    const uint64_t *bits =
        snapshot->bucket_steps + (size_t)(bucket - snapshot->first_bucket) * words;
    int64_t filled = 0;
    for (size_t i = 1; i < words; i++) {
        filled += __builtin_popcountll(bits[i]);
    }
    return filled;
}

int32_t eplb_snapshot_has_rank(const eplb_snapshot *snapshot, int32_t rank)
{
    return rank >= 0 && rank < snapshot->shape.ranks ? snapshot->held[rank] : 0;
}

int32_t eplb_snapshot_missing_ranks(const eplb_snapshot *snapshot, int32_t *missing,
                                    int32_t capacity)
{
    int32_t count = 0;
    for (int32_t rank = 0; rank < snapshot->shape.ranks; rank++) {
        if (snapshot->held[rank]) {
            continue;
        }
        if (count < capacity) {
            missing[count] = rank;
        }
        count++;
    }
    return count;
}

eplb_status eplb_snapshot_get_info(const eplb_snapshot *snapshot, eplb_snapshot_info *info,
                                   eplb_error *error)
{
    if (info == NULL || info->struct_size < sizeof(info->struct_size)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "snapshot: no info with a struct_size");
    }
    const eplb_window_shape *shape = &snapshot->shape;
    eplb_snapshot_info own = {
        .struct_size = sizeof(own),
        .layers = shape->layers,
        .experts = shape->experts,
        .rank = shape->rank,
        .ranks = shape->ranks,
        .model_layers = shape->model_layers,
        .ranks_held = shape->ranks - eplb_snapshot_missing_ranks(snapshot, NULL, 0),
        .buckets = snapshot->buckets,
        .first_bucket = snapshot->first_bucket,
        .steps = snapshot->steps,
    };
    for (int32_t i = 0; i < snapshot->buckets; i++) {
        own.filled_steps += eplb_snapshot_filled_steps(snapshot, snapshot->first_bucket + i);
        own.dropped = eplb_saturating_add(own.dropped, snapshot->dropped[i]);
    }
    eplb_struct_out(info, &own, sizeof(own));
    return EPLB_OK;
}
