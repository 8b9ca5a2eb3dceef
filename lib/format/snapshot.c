/* SPDX-License-Identifier: MIT */
/* Counts as a snapshot of a window, whose buckets are the steps. */
#include <inttypes.h>

#include <eplb/snapshot.h>

#include "base/memory.h"
#include "format/format.h"
#include "format/number.h"
#include "format/options.h"

typedef struct snapshot_counts {
    eplb_snapshot *snapshot;
    eplb_snapshot_info info;
    int32_t bucket; /* the next row's, from the first one on */
    int32_t layer;
    double *counts; /* [experts] */
} snapshot_counts;

static bool probe(const eplb_probe *probe)
{
    return probe->size >= EPLB_SNAPSHOT_MAGIC_SIZE &&
           memcmp(probe->data, EPLB_SNAPSHOT_MAGIC, EPLB_SNAPSHOT_MAGIC_SIZE) == 0;
}

/* Reads and unpacks the whole file, whose name libeplb does not know. Text may begin with a byte
 * order mark, which is skipped; a snapshot may not. */
static eplb_status unpack(snapshot_counts *self, eplb_reading *reading, eplb_error *error)
{
    if (reading->input.cursor[0] != EPLB_SNAPSHOT_MAGIC[0]) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: byte 0: not a snapshot",
                              reading->input.name);
    }
    char *bytes;
    size_t size;
    eplb_status status = eplb_reading_read_all(reading, &bytes, &size, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_error inner;
    status = eplb_snapshot_unpack(&self->snapshot, &reading->hooks, (const uint8_t *)bytes, size,
                                  &inner);
    eplb_free(&reading->hooks, bytes);
    return status == EPLB_OK
               ? EPLB_OK
               : eplb_error_set(error, status, "%s: %s", reading->input.name, inner.message);
}

static eplb_status check_shape(const snapshot_counts *self, const eplb_reading *reading,
                               eplb_error *error)
{
    const eplb_read_options *options = &reading->options;
    const char *name = reading->input.name;
    int32_t last_id = eplb_snapshot_layer_ids(self->snapshot)[self->info.layers - 1];
    if (last_id >= options->max_layers || self->info.experts > options->max_experts) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT,
                              "%s: layers up to %d of %d experts, limits %d and %d", name, last_id,
                              self->info.experts, options->max_layers - 1, options->max_experts);
    }
    if (options->experts > 0 && self->info.experts != options->experts) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: %d counts a layer, expected %d, %s",
                              name, self->info.experts, options->experts,
                              eplb_words_for_width(options));
    }
    return EPLB_OK;
}

/* Half a sum is no sum: the library names the ranks that are missing. */
static eplb_status check_ranks(const snapshot_counts *self, const eplb_reading *reading,
                               eplb_error *error)
{
    const eplb_snapshot *snapshot = self->snapshot;
    int32_t scenarios;
    eplb_error inner;
    eplb_status status =
        eplb_snapshot_list_scenarios(&snapshot, 1, NULL, NULL, 0, &scenarios, &inner);
    return status == EPLB_OK
               ? EPLB_OK
               : eplb_error_set(error, status, "%s: %s", reading->input.name, inner.message);
}

static eplb_status open_counts(eplb_reading *reading, eplb_error *error)
{
    snapshot_counts *self = eplb_alloc_zeroed(&reading->hooks, 1, sizeof(*self));
    reading->state = self;
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = unpack(self, reading, error);
    if (status == EPLB_OK) {
        self->info.struct_size = sizeof(self->info);
        status = eplb_snapshot_get_info(self->snapshot, &self->info, error);
        reading->model_layers = self->info.model_layers;
    }
    if (status == EPLB_OK) {
        status = check_shape(self, reading, error);
    }
    if (status == EPLB_OK) {
        status = check_ranks(self, reading, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    self->counts = eplb_alloc(&reading->hooks, (size_t)self->info.experts, sizeof(*self->counts));
    return self->counts != NULL ? EPLB_OK : eplb_out_of_memory(error);
}

static eplb_status take_row(snapshot_counts *self, const eplb_reading *reading, int64_t bucket,
                            int32_t layer_id, eplb_error *error)
{
    const uint64_t *sums = eplb_snapshot_row(self->snapshot, bucket, self->layer);
    for (int32_t e = 0; e < self->info.experts; e++) {
        if (sums[e] > (uint64_t)EPLB_EXACT_INTEGER) {
            return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                                  "%s: bucket %" PRId64 ": layer %d: expert %d: %" PRIu64
                                  " tokens are more than 2^53",
                                  reading->input.name, bucket, layer_id, e, sums[e]);
        }
        self->counts[e] = (double)sums[e];
    }
    return EPLB_OK;
}

static eplb_status next_counts(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    snapshot_counts *self = reading->state;
    int64_t first = self->info.first_bucket;
    while (self->bucket < self->info.buckets &&
           eplb_snapshot_filled_steps(self->snapshot, first + self->bucket) == 0) {
        self->bucket++;
    }
    if (self->bucket == self->info.buckets) {
        return EPLB_END;
    }
    int64_t bucket = first + self->bucket;
    int32_t layer_id = eplb_snapshot_layer_ids(self->snapshot)[self->layer];
    eplb_status status = take_row(self, reading, bucket, layer_id, error);
    if (status != EPLB_OK) {
        return status;
    }
    *row = (eplb_counts_row){
        .step = bucket, .layer = layer_id, .length = self->info.experts, .counts = self->counts};
    self->layer++;
    if (self->layer == self->info.layers) {
        self->layer = 0;
        self->bucket++;
    }
    return EPLB_OK;
}

static void close_counts(eplb_reading *reading)
{
    snapshot_counts *self = reading->state;
    if (self != NULL) {
        eplb_snapshot_destroy(&self->snapshot);
        eplb_free(&reading->hooks, self->counts);
        eplb_free(&reading->hooks, self);
    }
}

const eplb_format eplb_format_snapshot = {
    .name = "snapshot",
    .description = "snapshot of a window (eplb/snapshot.h)",
    .engine = "libeplb",
    .recognised = "its own magic",
    .flags = EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_MODEL_LAYER_IDS,
    .probe = probe,
    .counts = {.open = open_counts, .next = next_counts, .close = close_counts},
};
