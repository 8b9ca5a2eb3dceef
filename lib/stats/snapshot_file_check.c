/* SPDX-License-Identifier: MIT */
/* Matching checksums say only that nothing changed on the way: what was written may be wrong all
 * the same. Everything that holds for a snapshot of a window is checked here. */
#include "stats/snapshot_file.h"

#include <inttypes.h>

eplb_status eplb_snapshot_check_header(const eplb_snapshot_header *h, const char *what,
                                       eplb_error *error)
{
    uint64_t least_model_layers = h->model_layers > 0 ? h->layers : 0;
    const struct {
        const char *name;
        int offset;
        uint64_t value;
        uint64_t low;
        uint64_t high;
    } ranges[] = {
        {"layers", EPLB_AT_LAYERS, h->layers, 1, EPLB_MAX_LAYERS},
        {"experts", EPLB_AT_EXPERTS, h->experts, 1, EPLB_MAX_EXPERTS},
        {"ranks", EPLB_AT_RANKS, h->ranks, 1, EPLB_MAX_RANKS},
        {"rank", EPLB_AT_RANK, h->rank, 0, h->ranks - 1},
        {"steps per bucket", EPLB_AT_STEPS_PER_BUCKET, h->steps_per_bucket, 1,
         EPLB_MAX_STEPS_PER_BUCKET},
        {"model layers", EPLB_AT_MODEL_LAYERS, h->model_layers, least_model_layers,
         EPLB_MAX_LAYERS},
        {"buckets", EPLB_AT_BUCKETS, h->buckets, 0, EPLB_MAX_BUCKETS},
        {"first bucket", EPLB_AT_FIRST_BUCKET, h->first_bucket, 0, INT64_MAX - EPLB_MAX_BUCKETS},
        {"steps", EPLB_AT_STEPS, h->steps, h->first_bucket + h->buckets, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (ranges[i].value < ranges[i].low || ranges[i].value > ranges[i].high) {
            return eplb_error_set(error, EPLB_ERROR_PARSE,
                                  "%s: byte %d: %s: %" PRIu64 " not in %" PRIu64 "..%" PRIu64, what,
                                  ranges[i].offset, ranges[i].name, ranges[i].value, ranges[i].low,
                                  ranges[i].high);
        }
    }
    return EPLB_OK;
}

/* Buckets follow each other without a gap, and the last one has begun. */
static eplb_status check_first_step(const eplb_snapshot *snapshot, int32_t index, const char *place,
                                    eplb_error *error)
{
    const uint64_t *steps = snapshot->bucket_steps;
    size_t words = eplb_window_step_words(&snapshot->shape);
    uint64_t step = steps[(size_t)index * words];
    if (step < (uint64_t)snapshot->first_bucket || step >= (uint64_t)snapshot->steps) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: first step %" PRIu64 " not in %" PRId64 "..%" PRId64, place,
                              step, snapshot->first_bucket, snapshot->steps - 1);
    }
    uint64_t expected =
        index > 0 ? steps[(size_t)(index - 1) * words] + (uint64_t)snapshot->shape.steps_per_bucket
                  : step;
    if (step != expected) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: first step %" PRIu64 ", but %" PRIu64 " follows the last bucket",
                              place, step, expected);
    }
    return EPLB_OK;
}

/* Only steps that have begun can be counted; bits of others are 0. */
static eplb_status check_counted_steps(const eplb_snapshot *snapshot, int32_t index,
                                       const char *place, eplb_error *error)
{
    size_t words = eplb_window_step_words(&snapshot->shape);
    const uint64_t *steps = snapshot->bucket_steps + (size_t)index * words;
    uint64_t begun = (uint64_t)snapshot->steps - steps[0];
    uint64_t most = (uint64_t)snapshot->shape.steps_per_bucket;
    begun = begun < most ? begun : most;
    for (size_t i = 1; i < words; i++) {
        uint64_t before = 64 * (uint64_t)(i - 1);
        uint64_t left = begun > before ? begun - before : 0;
        if (left < 64 && steps[i] >> left != 0) {
            return eplb_error_set(error, EPLB_ERROR_PARSE,
                                  "%s: counted steps behind the %" PRIu64 " that have begun", place,
                                  begun);
        }
    }
    return EPLB_OK;
}

/* Only counted steps have tokens. */
static eplb_status check_tokens(const eplb_snapshot *snapshot, int32_t index, const char *place,
                                eplb_error *error)
{
    size_t cells = eplb_snapshot_cells(snapshot);
    const uint64_t *sums = snapshot->sums + (size_t)index * cells;
    if (eplb_snapshot_filled_steps(snapshot, snapshot->first_bucket + index) > 0) {
        return EPLB_OK;
    }
    uint64_t tokens = snapshot->dropped[index];
    for (size_t i = 0; i < cells; i++) {
        tokens |= sums[i];
    }
    return tokens == 0
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_PARSE, "%s: tokens, but no counted step", place);
}

eplb_status eplb_snapshot_check_bucket(const eplb_snapshot *snapshot, int32_t index,
                                       const char *place, eplb_error *error)
{
    eplb_status status = check_first_step(snapshot, index, place, error);
    if (status == EPLB_OK) {
        status = check_counted_steps(snapshot, index, place, error);
    }
    return status == EPLB_OK ? check_tokens(snapshot, index, place, error) : status;
}
