/* SPDX-License-Identifier: MIT */
#include "stats/window.h"

#include "base/memory.h"
#include "base/range.h"

void eplb_window_options_init(eplb_window_options *options)
{
    if (options == NULL) {
        return;
    }
    *options = (eplb_window_options){.struct_size = sizeof(*options),
                                     .buckets = 16,
                                     .steps_per_bucket = 64,
                                     .recorders = 1,
                                     .ranks = 1};
}

static eplb_status check(const eplb_window_options *options, eplb_error *error)
{
    const struct {
        const char *name;
        int32_t value;
        int32_t low;
        int32_t high;
    } ranges[] = {
        {"number of layers", options->layers, 1, EPLB_MAX_LAYERS},
        {"number of experts", options->experts, 1, EPLB_MAX_EXPERTS},
        {"number of slots", options->slots, 0, EPLB_MAX_SLOTS},
        {"number of buckets", options->buckets, 1, EPLB_MAX_BUCKETS},
        {"steps per bucket", options->steps_per_bucket, 1, EPLB_MAX_STEPS_PER_BUCKET},
        {"number of recorders", options->recorders, 1, EPLB_MAX_RECORDERS},
        {"steps to skip", options->skip_steps, 0, INT32_MAX},
        {"fold_each_step", options->fold_each_step, 0, 1},
        {"number of ranks", options->ranks, 1, EPLB_MAX_RANKS},
        {"rank", options->rank, 0, options->ranks - 1},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        eplb_status status = eplb_check_range("window", ranges[i].name, ranges[i].value,
                                              ranges[i].low, ranges[i].high, error);
        if (status != EPLB_OK) {
            return status;
        }
    }
    return EPLB_OK;
}

/* So that lanes share no cache line. */
#define SPARE_HOT_ROWS (EPLB_CACHE_LINE / sizeof(eplb_hot_row))

static void lay_out_lanes(eplb_window *window, size_t lane_cells, size_t lane_bank)
{
    size_t lane_hot = (size_t)window->shape.layers + SPARE_HOT_ROWS;
    for (size_t i = 0; i < 2 * (size_t)window->recorders; i++) {
        eplb_recorder *recorder = &window->recorder[i / 2];
        eplb_lane *lane = &recorder->lane[i % 2];
        recorder->window = window;
        atomic_init(&recorder->preferred, 0);
        atomic_init(&lane->taken, false);
        lane->hot = window->hot + i * lane_hot;
        lane->cells = window->cell + i * lane_cells;
        lane->bank = window->bank + i * lane_bank;
    }
}

static eplb_status allocate(eplb_window *window, eplb_error *error)
{
    const eplb_hooks *hooks = &window->hooks;
    size_t lanes = 2 * (size_t)window->recorders;
    size_t layers = (size_t)window->shape.layers;
    size_t buckets = (size_t)window->buckets;
    size_t words = buckets * eplb_window_step_words(&window->shape);
    size_t lane_cells;
    size_t lane_bank;
    size_t map;
    size_t all_cells;
    size_t all_banks;
    if (!eplb_size_mul(2 * layers, window->cells, &lane_cells) ||
        !eplb_size_mul(layers * buckets, window->bank_row, &lane_bank) ||
        !eplb_size_mul(lane_bank, lanes, &all_banks) ||
        !eplb_size_mul(lane_cells, lanes, &all_cells) ||
        !eplb_size_mul(layers, (size_t)window->slots, &map)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW, "window: its size overflows");
    }
    window->recorder = eplb_alloc_zeroed(hooks, lanes / 2, sizeof(*window->recorder));
    window->hot = eplb_alloc_zeroed(hooks, lanes * (layers + SPARE_HOT_ROWS), sizeof(*window->hot));
    window->cell = eplb_alloc_zeroed(hooks, all_cells, sizeof(*window->cell));
    window->bank = eplb_alloc_zeroed(hooks, all_banks, sizeof(*window->bank));
    window->slot_expert = eplb_alloc_zeroed(hooks, map, sizeof(*window->slot_expert));
    window->bucket_steps = eplb_alloc(hooks, words, sizeof(*window->bucket_steps));
    if (window->recorder == NULL || window->hot == NULL || window->cell == NULL ||
        window->bank == NULL || window->slot_expert == NULL || window->bucket_steps == NULL) {
        return eplb_out_of_memory(error);
    }
    lay_out_lanes(window, lane_cells, lane_bank);
    return EPLB_OK;
}

static void start_time(eplb_window *window)
{
    size_t words = (size_t)window->buckets * eplb_window_step_words(&window->shape);
    for (size_t i = 0; i < words; i++) {
        atomic_init(&window->bucket_steps[i], 0);
    }
    atomic_init(&window->clock, 0);
    atomic_init(&window->version, 0);
    atomic_init(&window->steps, 0);
    atomic_init(&window->first_bucket, 0);
    atomic_init(&window->last_bucket, -1);
}

static eplb_status build(eplb_window *window, const eplb_window_options *options, eplb_error *error)
{
    const eplb_window_shape shape = {.layers = options->layers,
                                     .experts = options->experts,
                                     .rank = options->rank,
                                     .ranks = options->ranks,
                                     .steps_per_bucket = options->steps_per_bucket,
                                     .model_layers = options->model_layers,
                                     .layer_ids = options->layer_ids,
                                     .name = options->name};
    eplb_status status = eplb_window_shape_copy(&window->shape, &window->hooks, &shape, error);
    if (status != EPLB_OK) {
        return status;
    }
    window->slots = options->slots;
    window->buckets = options->buckets;
    window->recorders = options->recorders;
    window->skip_steps = options->skip_steps;
    window->fold_each_step = options->fold_each_step != 0;
    /* Each with a cell for dropped tokens; sets begin and end with a cache line. */
    size_t line = EPLB_CACHE_LINE / sizeof(*window->cell);
    window->cells = EPLB_FIRST_CELL + ((size_t)options->experts + line) / line * line;
    window->bank_row = EPLB_BANK_SUMS + (size_t)options->experts + 1;
    status = allocate(window, error);
    if (status != EPLB_OK) {
        return status;
    }
    start_time(window);
    window->has_mutex = pthread_mutex_init(&window->readers, NULL) == 0;
    return window->has_mutex ? EPLB_OK : eplb_out_of_memory(error);
}

eplb_status eplb_window_create(eplb_window **out, const eplb_hooks *hooks,
                               const eplb_window_options *options, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    eplb_status status = eplb_check_given("window", "output", out, error);
    if (status == EPLB_OK) {
        status = eplb_check_given("window", "options", options, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    eplb_window_options complete;
    eplb_window_options_init(&complete);
    if (!eplb_struct_in(&complete, sizeof(complete), options)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "window: options without struct_size: see eplb_window_options_init");
    }
    status = check(&complete, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_window *window = eplb_alloc_zeroed(&resolved, 1, sizeof(*window));
    if (window == NULL) {
        return eplb_out_of_memory(error);
    }
    window->hooks = resolved;
    status = build(window, &complete, error);
    if (status != EPLB_OK) {
        eplb_window_destroy(&window);
        return status;
    }
    *out = window;
    return EPLB_OK;
}

void eplb_window_destroy(eplb_window **window)
{
    if (window == NULL || *window == NULL) {
        return;
    }
    eplb_window *self = *window;
    eplb_hooks hooks = self->hooks;
    if (self->has_mutex) {
        (void)pthread_mutex_destroy(&self->readers);
    }
    eplb_window_shape_free(&self->shape, &hooks);
    eplb_free(&hooks, self->recorder);
    eplb_free(&hooks, self->hot);
    eplb_free(&hooks, self->cell);
    eplb_free(&hooks, self->bank);
    eplb_free(&hooks, self->slot_expert);
    eplb_free(&hooks, (void *)self->bucket_steps);
    eplb_free(&hooks, self);
    *window = NULL;
}

eplb_recorder *eplb_window_recorder(eplb_window *window, int32_t index)
{
    return index >= 0 && index < window->recorders ? &window->recorder[index] : NULL;
}
