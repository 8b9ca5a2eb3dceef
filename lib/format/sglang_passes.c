/* SPDX-License-Identifier: MIT */
/*
 * SGLang's recorder in the mode per_pass: a file of each rank, with a record of the rank's own
 * counts of slots, [layers][slots], for each forward pass, and the map of the slots to experts.
 */
#include <stdio.h>

#include "base/memory.h"
#include "format/fold.h"
#include "format/sglang_pt.h"

static const char map_key[] = "key 'last_physical_to_logical_map'";
static const char name_prefix[] = "expert_distribution_recorder_";

/* More keys than a record has, so that one which comes again and again takes no time. */
#define MOST_RECORD_ITEMS 128

static eplb_status record_error(const eplb_reading *reading, const char *what, eplb_error *error)
{
    const eplb_sglang_pt *self = reading->state;
    return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: data.pkl: record %d: %s",
                          reading->input.name, self->record_number, what);
}

/* The value of a key that a record has once. */
static eplb_status find_in_record(const eplb_reading *reading, const char *key,
                                  const eplb_pickle_value **value, eplb_error *error)
{
    const eplb_sglang_pt *self = reading->state;
    const eplb_pickle *pickle = &self->torch.pickle;
    const eplb_pickle_value *record = eplb_pickle_item(pickle, self->record);
    if (record->kind != EPLB_PICKLED_DICTIONARY || record->length > MOST_RECORD_ITEMS) {
        return record_error(reading, "not a dictionary of at most 64 keys", error);
    }
    int32_t found = eplb_pickle_find(pickle, record, key, value);
    if (found == 1) {
        return EPLB_OK;
    }
    char what[80];
    snprintf(what, sizeof(what), "%s key '%s'", found == 0 ? "no" : "second", key);
    return record_error(reading, what, error);
}

/* The value of a key whose numbers are 0 to `largest`. */
static eplb_status find_number(const eplb_reading *reading, const char *key, int64_t largest,
                               int64_t *number, eplb_error *error)
{
    const eplb_pickle_value *value;
    eplb_status status = find_in_record(reading, key, &value, error);
    if (status != EPLB_OK) {
        return status;
    }
    char what[80];
    if (value->kind != EPLB_PICKLED_INTEGER) {
        snprintf(what, sizeof(what), "%s is no integer", key);
        return record_error(reading, what, error);
    }
    *number = value->as.integer;
    if (*number < 0 || *number > largest) {
        snprintf(what, sizeof(what), "%s %lld not in 0..%lld", key, (long long)*number,
                 (long long)largest);
        return record_error(reading, what, error);
    }
    return EPLB_OK;
}

/* The counts of the next record, as many as the map has slots. All records together have no more
 * counts than the file has bytes, unless they show some of them again and again. */
static eplb_status open_record(eplb_reading *reading, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    const eplb_pickle_value *counts;
    char what[80];
    eplb_status status = find_in_record(reading, "global_physical_count", &counts, error);
    if (status != EPLB_OK) {
        return status;
    }
    snprintf(what, sizeof(what), "record %d: key 'global_physical_count'", self->record_number);
    status = eplb_torch_tensor(&self->torch, counts, what, &self->tensor, error);
    if (status != EPLB_OK) {
        return status;
    }
    const eplb_tensor *tensor = &self->tensor;
    if (tensor->dimensions != 2 || tensor->shape[0] != (size_t)self->layers ||
        tensor->shape[1] != (size_t)self->width) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: %s: not of [%d layers, %d slots], as the map is",
                              reading->input.name, what, self->layers, self->width);
    }
    self->items += (uint64_t)self->layers * (uint64_t)self->width;
    if (self->items > self->torch.file_size) {
        return record_error(reading, "the records have more counts than the file has bytes", error);
    }
    return EPLB_OK;
}

/* Checks the next record, which becomes the one that is read. */
static eplb_status start_record(eplb_reading *reading, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    int64_t rank = 0;
    eplb_status status =
        find_number(reading, "forward_pass_id", EPLB_EXACT_INTEGER, &self->pass, error);
    if (status == EPLB_OK) {
        status = find_number(reading, "rank", INT32_MAX, &rank, error);
    }
    if (status == EPLB_OK && rank != reading->rank) {
        return eplb_error_set(
            error, EPLB_ERROR_DATA, "%s: data.pkl: record %d: rank %lld, but %d in the first one",
            reading->input.name, self->record_number, (long long)rank, reading->rank);
    }
    status = status == EPLB_OK ? open_record(reading, error) : status;
    self->record = eplb_pickle_following(&self->torch.pickle, self->record);
    self->record_number++;
    return status;
}

/* Adds up the slots of each expert. */
static eplb_status fold_row(const eplb_reading *reading, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    eplb_error inner = {0};
    memset(self->other, 0, (size_t)self->experts * sizeof(*self->other));
    eplb_status status = eplb_fold_row(self->map + (size_t)self->layer * (size_t)self->width,
                                       self->width, self->counts, self->other, &inner);
    return status == EPLB_OK
               ? EPLB_OK
               : eplb_error_set(error, status, "%s: step %lld: layer %d: %s", reading->input.name,
                                (long long)self->pass, self->layer, inner.message);
}

static eplb_status next_counts(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    eplb_status status = EPLB_OK;
    if (self->layer == self->layers) {
        if (self->record == NULL) {
            return EPLB_END;
        }
        status = start_record(reading, error);
        self->layer = 0;
    }
    if (status == EPLB_OK) {
        size_t offset = self->tensor.offset + (size_t)self->layer * self->tensor.stride[0];
        status = eplb_sglang_pt_read_row(reading, offset, self->pass, self->layer, "slot", error);
    }
    if (status == EPLB_OK) {
        status = fold_row(reading, error);
    }
    if (status == EPLB_OK) {
        *row = (eplb_counts_row){.step = self->pass,
                                 .layer = self->layer,
                                 .length = self->experts,
                                 .counts = self->other};
        self->layer++;
    }
    return status;
}

/* Reads which expert a slot has: -1, or one that each layer has room for. */
static eplb_status read_slot(eplb_reading *reading, int32_t layer, int32_t slot, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    const eplb_tensor *tensor = &self->tensor;
    size_t offset = tensor->offset + (size_t)layer * tensor->stride[0];
    double value;
    size_t read;
    eplb_number_class number;
    eplb_status status =
        eplb_torch_read(&self->torch, tensor, offset + (size_t)slot * tensor->stride[1], 1, 1,
                        &value, &read, &number, error);
    if (status != EPLB_OK) {
        return status;
    }
    int32_t known = reading->logical_experts;
    int32_t limit = known > 0 ? known : reading->options.max_experts;
    limit = limit < self->width ? limit : self->width;
    if (tensor->type.kind == 'f' || !(value >= -1.0 && value < limit)) {
        bool is_beyond = known == 0 && value >= reading->options.max_experts;
        return eplb_error_set(error, is_beyond ? EPLB_ERROR_LIMIT : EPLB_ERROR_DATA,
                              "%s: %s: layer %d: slot %d: expert %.17g not in -1..%d",
                              reading->input.name, map_key, layer, slot, value, limit - 1);
    }
    int32_t expert = (int32_t)value;
    self->map[(size_t)layer * (size_t)self->width + (size_t)slot] = expert;
    self->experts = expert >= self->experts ? expert + 1 : self->experts;
    return EPLB_OK;
}

static eplb_status read_map(eplb_reading *reading, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    self->map =
        eplb_alloc(&reading->hooks, (size_t)self->layers * (size_t)self->width, sizeof(*self->map));
    eplb_status status = self->map != NULL ? EPLB_OK : eplb_out_of_memory(error);
    for (int32_t l = 0; l < self->layers && status == EPLB_OK; l++) {
        for (int32_t s = 0; s < self->width && status == EPLB_OK; s++) {
            status = read_slot(reading, l, s, error);
        }
    }
    if (status != EPLB_OK) {
        return status;
    }
    int32_t known = reading->logical_experts;
    if (self->experts == 0) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: %s: all slots are empty",
                              reading->input.name, map_key);
    }
    if (known > 0 && self->experts != known) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: %s: experts below %d, expected %d",
                              reading->input.name, map_key, self->experts, known);
    }
    self->other = eplb_alloc(&reading->hooks, (size_t)self->experts, sizeof(*self->other));
    return self->other != NULL ? EPLB_OK : eplb_out_of_memory(error);
}

static eplb_status open_map(eplb_reading *reading, const eplb_pickle_value *map, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    if (map == NULL) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: data.pkl: no %s beside 'records'",
                              reading->input.name, map_key);
    }
    eplb_status status = eplb_torch_tensor(&self->torch, map, map_key, &self->tensor, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (self->tensor.dimensions != 2) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: %s: %d dimensions, expected [layers, slots]",
                              reading->input.name, map_key, self->tensor.dimensions);
    }
    status = eplb_sglang_pt_shape(reading, map_key, self->tensor.shape[0], self->tensor.shape[1],
                                  reading->options.max_slots, error);
    return status == EPLB_OK ? read_map(reading, error) : status;
}

/* In names that SGLang writes, the rank is behind the last '_'; others may end with any number. */
static eplb_status check_name(const eplb_reading *reading, eplb_error *error)
{
    const char *slash = strrchr(reading->input.name, '/');
    const char *name = slash != NULL ? slash + 1 : reading->input.name;
    bool is_own = strncmp(name, name_prefix, strlen(name_prefix)) == 0;
    const char *end = strrchr(name, '_');
    int32_t rank;
    if (is_own && eplb_listing_number(end, "_", ".pt", &rank) && rank != reading->rank) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: records of rank %d, but the name of the file says %d",
                              reading->input.name, reading->rank, rank);
    }
    return EPLB_OK;
}

eplb_status eplb_sglang_passes_open(eplb_reading *reading, const eplb_pickle_value *records,
                                    const eplb_pickle_value *map, eplb_error *error)
{
    eplb_sglang_pt *self = reading->state;
    self->next = next_counts;
    reading->is_folded = true;
    eplb_status status = open_map(reading, map, error);
    if (status != EPLB_OK) {
        return status;
    }
    self->layer = self->layers;
    self->record =
        records->kind == EPLB_PICKLED_LIST ? eplb_pickle_first(&self->torch.pickle, records) : NULL;
    if (self->record == NULL) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: data.pkl: key 'records' is not a list of records",
                              reading->input.name);
    }
    int64_t rank = 0;
    status = find_number(reading, "rank", INT32_MAX, &rank, error);
    reading->rank = (int32_t)rank;
    return status == EPLB_OK ? check_name(reading, error) : status;
}
