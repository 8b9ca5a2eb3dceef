/* SPDX-License-Identifier: MIT */
#include "format/slot_step.h"

#include "format/fold.h"

void eplb_slot_step_begin(eplb_slot_step *self, eplb_scanner *scanner)
{
    self->has_step = self->has_counts = self->has_map = false;
    self->counts.layers = 0;
    self->next_layer = 0;
    scanner->step = scanner->layer = -1;
}

/* Appends the row that was read. Doubling keeps what is held in proportion to what was read. */
static eplb_status add_row(eplb_slot_step *self, const eplb_scanner *scanner,
                           eplb_slot_matrix *matrix, const eplb_reading *reading, eplb_error *error)
{
    size_t slots = (size_t)self->row.length;
    size_t used = (size_t)matrix->layers * slots;
    uint64_t bytes = (uint64_t)(used + slots) * sizeof(*matrix->values);
    if (bytes > (uint64_t)reading->options.max_bytes) {
        return eplb_scan_fail(scanner, EPLB_ERROR_LIMIT, error,
                              "a step of more than %lld bytes in memory",
                              (long long)reading->options.max_bytes);
    }
    eplb_status status = eplb_reading_check_unpacked(reading, bytes, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (used + slots > matrix->capacity) {
        size_t capacity = 2 * used > used + slots ? 2 * used : used + slots;
        double *values =
            eplb_realloc(&reading->hooks, matrix->values, capacity, sizeof(*matrix->values));
        if (values == NULL) {
            return eplb_out_of_memory(error);
        }
        matrix->values = values;
        matrix->capacity = capacity;
    }
    memcpy(matrix->values + used, self->row.values, slots * sizeof(*matrix->values));
    matrix->slots = self->row.length;
    matrix->layers++;
    return EPLB_OK;
}

static eplb_status scan_row(eplb_slot_step *self, eplb_scanner *scanner,
                            const eplb_reading *reading, bool ids, eplb_error *error)
{
    const eplb_read_options *options = &reading->options;
    bool known = reading->logical_experts > 0;
    return ids ? eplb_scan_ids(scanner, &self->row, options->max_slots,
                               known ? reading->logical_experts : options->max_experts,
                               known ? EPLB_ERROR_DATA : EPLB_ERROR_LIMIT, error)
               : eplb_scan_counts(scanner, &self->row, options->max_slots, error);
}

static eplb_status read_layer(eplb_slot_step *self, eplb_scanner *scanner,
                              const eplb_reading *reading, eplb_slot_matrix *matrix,
                              eplb_error *error)
{
    scanner->layer = matrix->layers;
    if (matrix->layers == reading->options.max_layers) {
        return eplb_scan_fail(scanner, EPLB_ERROR_LIMIT, error, "more than %d layers",
                              reading->options.max_layers);
    }
    eplb_status status = eplb_scan_expect(scanner, '[', "'[': a list of slots", error);
    if (status == EPLB_OK) {
        status = scan_row(self, scanner, reading, matrix == &self->map, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    if (self->row.length == 0 || (matrix->layers > 0 && self->row.length != matrix->slots)) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "%d slots, expected %d",
                              self->row.length, matrix->layers > 0 ? matrix->slots : 1);
    }
    return add_row(self, scanner, matrix, reading, error);
}

static eplb_status read_matrix(eplb_slot_step *self, eplb_scanner *scanner,
                               const eplb_reading *reading, eplb_slot_matrix *matrix,
                               eplb_error *error)
{
    eplb_status status = eplb_scan_expect(scanner, '[', "'[': a list of layers", error);
    matrix->layers = 0;
    bool more = true;
    while (status == EPLB_OK && more) {
        status = read_layer(self, scanner, reading, matrix, error);
        if (status == EPLB_OK) {
            status = eplb_scan_either(scanner, ',', ']', &more, error);
        }
    }
    scanner->layer = -1;
    return status;
}

static eplb_status read_step(eplb_slot_step *self, eplb_scanner *scanner, eplb_error *error)
{
    eplb_status status = eplb_scan_integer(scanner, "step", EPLB_EXACT_INTEGER, &self->step, error);
    if (status == EPLB_OK) {
        scanner->step = self->step;
    }
    return status;
}

eplb_status eplb_slot_step_member(eplb_slot_step *self, eplb_scanner *scanner,
                                  const eplb_reading *reading, const char *key, eplb_error *error)
{
    bool is_counts = strcmp(key, self->counts_key) == 0;
    bool is_map = strcmp(key, self->map_key) == 0;
    bool is_step = strcmp(key, "step") == 0;
    if (!is_counts && !is_map && !is_step) {
        return eplb_scan_skip(scanner, error);
    }
    bool *has = is_counts ? &self->has_counts : (is_map ? &self->has_map : &self->has_step);
    eplb_status status = eplb_scan_first_time(scanner, has, key, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (is_step) {
        return read_step(self, scanner, error);
    }
    return is_counts && self->map_only
               ? eplb_scan_skip(scanner, error)
               : read_matrix(self, scanner, reading, is_map ? &self->map : &self->counts, error);
}

static eplb_status check_shape(eplb_slot_step *self, const eplb_scanner *scanner, eplb_error *error)
{
    const eplb_slot_matrix *counts = &self->counts;
    const eplb_slot_matrix *map = &self->map;
    if (!self->map_only && (counts->layers != map->layers || counts->slots != map->slots)) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error,
                              "%d layers of %d slots in '%s', but %d of %d in '%s'", counts->layers,
                              counts->slots, self->counts_key, map->layers, map->slots,
                              self->map_key);
    }
    if (self->layers > 0 && map->layers != self->layers) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "%d layers, expected %d",
                              map->layers, self->layers);
    }
    self->layers = map->layers;
    return EPLB_OK;
}

/* The largest id in the map; -1: every slot is empty. */
static int32_t find_largest(const eplb_slot_matrix *map, size_t *place)
{
    size_t cells = (size_t)map->layers * (size_t)map->slots;
    double largest = -1.0;
    for (size_t i = 0; i < cells; i++) {
        if (map->values[i] > largest) {
            largest = map->values[i];
            *place = i;
        }
    }
    return (int32_t)largest;
}

/* Every expert has a replica: the first map tells their number, unless it is known. */
static eplb_status check_experts(eplb_slot_step *self, eplb_scanner *scanner,
                                 int32_t logical_experts, eplb_error *error)
{
    size_t place = 0;
    int32_t largest = find_largest(&self->map, &place);
    if (largest < 0) {
        return eplb_scan_fail(scanner, EPLB_ERROR_DATA, error, "'%s': every slot is empty",
                              self->map_key);
    }
    if (self->experts == 0 && logical_experts > 0 && largest + 1 != logical_experts) {
        return eplb_scan_fail(scanner, EPLB_ERROR_DATA, error,
                              "'%s' has %d experts, expected %d, the number of experts given",
                              self->map_key, largest + 1, logical_experts);
    }
    self->experts = self->experts > 0 ? self->experts : largest + 1;
    if (largest >= self->experts) {
        return eplb_scan_fail(scanner, EPLB_ERROR_DATA, error,
                              "layer %d: slot %d: expert %d not in 0..%d",
                              (int)(place / (size_t)self->map.slots),
                              (int)(place % (size_t)self->map.slots), largest, self->experts - 1);
    }
    return EPLB_OK;
}

static eplb_status make_room(eplb_slot_step *self, const eplb_hooks *hooks, eplb_error *error)
{
    int32_t *slot_experts = eplb_realloc(hooks, self->slot_experts, (size_t)self->map.slots,
                                         sizeof(*self->slot_experts));
    if (slot_experts == NULL) {
        return eplb_out_of_memory(error);
    }
    self->slot_experts = slot_experts;
    if (self->folded == NULL) {
        self->folded = eplb_alloc(hooks, (size_t)self->experts, sizeof(*self->folded));
    }
    return self->folded != NULL ? EPLB_OK : eplb_out_of_memory(error);
}

/* A record has the loads of all ranks in a step. A second one of the same step, or of an earlier
 * one, is of another run: its counts are no part of that step. */
static eplb_status check_order(eplb_slot_step *self, const eplb_scanner *scanner, eplb_error *error)
{
    if (self->has_previous && self->step <= self->previous) {
        return eplb_scan_fail(scanner, EPLB_ERROR_DATA, error,
                              "comes after step %lld: steps ascend in the log of one run: give "
                              "logs that were joined as files of their own",
                              (long long)self->previous);
    }
    self->has_previous = true;
    self->previous = self->step;
    return EPLB_OK;
}

eplb_status eplb_slot_step_end(eplb_slot_step *self, eplb_scanner *scanner,
                               const eplb_reading *reading, eplb_error *error)
{
    if (!self->has_step || !self->has_counts || !self->has_map) {
        const char *key = !self->has_step ? "step" : self->map_key;
        key = self->has_step && !self->has_counts ? self->counts_key : key;
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "no key '%s'", key);
    }
    eplb_status status = check_shape(self, scanner, error);
    if (status == EPLB_OK) {
        status = check_experts(self, scanner, reading->logical_experts, error);
    }
    if (status == EPLB_OK && !self->map_only) {
        status = check_order(self, scanner, error);
    }
    return status == EPLB_OK && !self->map_only ? make_room(self, &reading->hooks, error) : status;
}

bool eplb_slot_step_has_row(const eplb_slot_step *self)
{
    return self->next_layer < self->counts.layers;
}

eplb_status eplb_slot_step_next(eplb_slot_step *self, eplb_scanner *scanner, eplb_counts_row *row,
                                eplb_error *error)
{
    int32_t slots = self->map.slots;
    size_t first = (size_t)self->next_layer * (size_t)slots;
    for (int32_t s = 0; s < slots; s++) {
        self->slot_experts[s] = (int32_t)self->map.values[first + (size_t)s];
    }
    memset(self->folded, 0, (size_t)self->experts * sizeof(*self->folded));
    eplb_error inner;
    eplb_status status =
        eplb_fold_row(self->slot_experts, slots, self->counts.values + first, self->folded, &inner);
    if (status != EPLB_OK) {
        scanner->layer = self->next_layer;
        return eplb_scan_fail(scanner, status, error, "%s", inner.message);
    }
    *row = (eplb_counts_row){.step = self->step,
                             .layer = self->next_layer,
                             .length = self->experts,
                             .counts = self->folded};
    self->next_layer++;
    return EPLB_OK;
}

eplb_status eplb_slot_step_copy_map(const eplb_slot_step *self, const eplb_read_options *options,
                                    eplb_map *map, eplb_error *error)
{
    size_t cells = (size_t)self->map.layers * (size_t)self->map.slots;
    eplb_status status =
        eplb_map_shape(map, options, (size_t)self->map.layers, (size_t)self->map.slots, error);
    for (size_t i = 0; i < cells && status == EPLB_OK; i++) {
        map->experts[i] = (int32_t)self->map.values[i];
    }
    map->width = self->experts;
    return status;
}

void eplb_slot_step_clear(eplb_slot_step *self, const eplb_hooks *hooks)
{
    eplb_free(hooks, self->counts.values);
    eplb_free(hooks, self->map.values);
    eplb_free(hooks, self->row.values);
    eplb_free(hooks, self->slot_experts);
    eplb_free(hooks, self->folded);
}
