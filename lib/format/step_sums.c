/* SPDX-License-Identifier: MIT */
#include "format/step_sums.h"

#include <math.h>

#include "base/memory.h"

void eplb_step_sums_begin(eplb_step_sums *sums)
{
    sums->rows = 0;
}

static bool make_row_room(eplb_step_sums *sums)
{
    if (sums->rows < sums->row_room) {
        return true;
    }
    size_t room = 2 * (size_t)sums->row_room + 8;
    int32_t *ids = eplb_realloc(&sums->hooks, sums->layer_ids, room, sizeof(*ids));
    if (ids == NULL) {
        return false;
    }
    sums->layer_ids = ids;
    int32_t *files = eplb_realloc(&sums->hooks, sums->last_file, room, sizeof(*files));
    if (files == NULL) {
        return false;
    }
    sums->last_file = files;
    sums->row_room = (int32_t)room;
    return true;
}

static bool make_count_room(eplb_step_sums *sums, int32_t rows, int32_t experts)
{
    size_t wanted;
    if (!eplb_size_mul((size_t)rows, (size_t)experts, &wanted)) {
        return false;
    }
    if (wanted <= sums->count_room) {
        return true;
    }
    wanted += wanted / 2;
    double *counts = eplb_realloc(&sums->hooks, sums->counts, wanted, sizeof(*counts));
    if (counts == NULL) {
        return false;
    }
    sums->counts = counts;
    sums->count_room = wanted;
    return true;
}

/* Makes all rows longer, the last one first, as they lie behind each other. */
static bool widen(eplb_step_sums *sums, int32_t experts)
{
    if (!make_count_room(sums, sums->rows, experts)) {
        return false;
    }
    size_t before = (size_t)sums->experts;
    size_t after = (size_t)experts;
    for (size_t r = (size_t)sums->rows; r-- > 0;) {
        double *row = sums->counts + r * after;
        memmove(row, sums->counts + r * before, before * sizeof(*row));
        memset(row + before, 0, (after - before) * sizeof(*row));
    }
    sums->experts = experts;
    return true;
}

/* Where the row of a layer is or would be. */
static int32_t place_of(const eplb_step_sums *sums, int32_t layer)
{
    int32_t low = 0;
    int32_t high = sums->rows;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (sums->layer_ids[middle] < layer) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool insert_row(eplb_step_sums *sums, int32_t place, int32_t layer)
{
    if (!make_row_room(sums) || !make_count_room(sums, sums->rows + 1, sums->experts)) {
        return false;
    }
    size_t behind = (size_t)(sums->rows - place);
    size_t width = (size_t)sums->experts;
    double *row = sums->counts + (size_t)place * width;
    memmove(row + width, row, behind * width * sizeof(*row));
    memset(row, 0, width * sizeof(*row));
    memmove(sums->layer_ids + place + 1, sums->layer_ids + place, behind * sizeof(int32_t));
    memmove(sums->last_file + place + 1, sums->last_file + place, behind * sizeof(int32_t));
    sums->layer_ids[place] = layer;
    sums->rows++;
    return true;
}

/* Each row is finite; their sum need not be. */
static eplb_status add_counts(double *sum, const eplb_counts_row *row, eplb_error *error)
{
    for (int32_t e = 0; e < row->length; e++) {
        sum[e] += row->counts[e];
        if (!isfinite(sum[e])) {
            return eplb_error_set(error, EPLB_ERROR_OVERFLOW,
                                  "step %lld: layer %d: expert %d: the sum of its counts is too "
                                  "large",
                                  (long long)row->step, row->layer, e);
        }
    }
    return EPLB_OK;
}

eplb_status eplb_step_sums_add(eplb_step_sums *sums, int32_t file, const eplb_counts_row *row,
                               bool *is_new, eplb_error *error)
{
    if (row->length > sums->experts && !widen(sums, row->length)) {
        return eplb_out_of_memory(error);
    }
    int32_t place = place_of(sums, row->layer);
    *is_new = place == sums->rows || sums->layer_ids[place] != row->layer;
    if (*is_new && !insert_row(sums, place, row->layer)) {
        return eplb_out_of_memory(error);
    }
    sums->last_file[place] = file;
    return add_counts(sums->counts + (size_t)place * (size_t)sums->experts, row, error);
}

int32_t eplb_step_sums_lacking(const eplb_step_sums *sums, int32_t file)
{
    for (int32_t r = 0; r < sums->rows; r++) {
        if (sums->last_file[r] != file) {
            return sums->layer_ids[r];
        }
    }
    return -1;
}

void eplb_step_sums_clear(eplb_step_sums *sums)
{
    eplb_free(&sums->hooks, sums->layer_ids);
    eplb_free(&sums->hooks, sums->last_file);
    eplb_free(&sums->hooks, sums->counts);
    sums->layer_ids = sums->last_file = NULL;
    sums->counts = NULL;
}
