/* SPDX-License-Identifier: MIT */
/* The placement that folds slot counts. */
#include "stats/window.h"

#include "base/range.h"

static eplb_status check_placement(const eplb_window *window, const eplb_placement *placement,
                                   eplb_error *error)
{
    eplb_status status = eplb_check_given("window", "placement", placement, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (window->slots == 0) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "window: a placement, but no slots");
    }
    const struct {
        const char *name;
        int32_t given;
        int32_t own;
    } sizes[] = {
        {"layers", eplb_placement_layers(placement), window->shape.layers},
        {"experts", eplb_placement_experts(placement), window->shape.experts},
        {"slots", eplb_placement_slots(placement), window->slots},
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i].given != sizes[i].own) {
            return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                  "window: a placement of %d %s, expected %d", sizes[i].given,
                                  sizes[i].name, sizes[i].own);
        }
    }
    return EPLB_OK;
}

/* The first slot that holds another expert than it did: its index in window.slot_expert. */
static bool find_change(const eplb_window *window, const eplb_placement *placement, size_t *at)
{
    size_t slots = (size_t)window->slots;
    for (int32_t l = 0; l < window->shape.layers; l++) {
        const int32_t *row = eplb_placement_row(placement, l);
        for (size_t s = 0; s < slots; s++) {
            *at = (size_t)l * slots + s;
            int32_t expert = row[s] >= 0 ? row[s] : window->shape.experts;
            if (window->slot_expert[*at] != expert) {
                return true;
            }
        }
    }
    return false;
}

static void copy_map(eplb_window *window, const eplb_placement *placement)
{
    int32_t *expert = window->slot_expert;
    for (int32_t l = 0; l < window->shape.layers; l++) {
        const int32_t *row = eplb_placement_row(placement, l);
        for (int32_t s = 0; s < window->slots; s++) {
            *expert++ = row[s] >= 0 ? row[s] : window->shape.experts;
        }
    }
}

/* Goes through all lanes: when it is back, no recording call runs that saw an earlier clock. True
 * when the window holds slot counts. */
static bool wait_and_look_for_slot_counts(eplb_window *window)
{
    uint64_t oldest = (uint64_t)(eplb_window_read_time(window, NULL).first_bucket + 1);
    bool found = false;
    for (int32_t r = 0; r < window->recorders; r++) {
        for (unsigned i = 0; i < 2; i++) {
            eplb_lane *lane = eplb_lane_take(&window->recorder[r], i);
            found = found || lane->slot_tag >= oldest;
            eplb_lane_leave(lane);
        }
    }
    return found;
}

static eplb_status refuse(const eplb_window *window, const eplb_placement *placement, size_t at,
                          eplb_error *error)
{
    int32_t layer = (int32_t)(at / (size_t)window->slots);
    int32_t slot = (int32_t)(at % (size_t)window->slots);
    int32_t expert = window->slot_expert[at];
    return eplb_error_set(error, EPLB_ERROR_DATA,
                          "window: layer %d: slot %d: expert %d, but slot counts in the window "
                          "were taken for expert %d: reset it or fold each step by its own "
                          "placement",
                          window->shape.layer_ids[layer], slot,
                          eplb_placement_row(placement, layer)[slot],
                          expert < window->shape.experts ? expert : -1);
}

eplb_status eplb_window_set_placement(eplb_window *window, const eplb_placement *placement,
                                      eplb_error *error)
{
    eplb_status status = check_placement(window, placement, error);
    if (status != EPLB_OK) {
        return status;
    }
    uint64_t clock = atomic_load_explicit(&window->clock, memory_order_relaxed);
    bool has_map = (clock & EPLB_CLOCK_MAP) != 0;
    size_t change = 0;
    if (has_map && !find_change(window, placement, &change)) {
        return EPLB_OK;
    }
    (void)pthread_mutex_lock(&window->readers);
    uint64_t without_map = clock & ~(uint64_t)EPLB_CLOCK_MAP;
    atomic_store_explicit(&window->clock, without_map | EPLB_CLOCK_MAP_CHANGING,
                          memory_order_release);
    if (wait_and_look_for_slot_counts(window) && !window->fold_each_step) {
        status = refuse(window, placement, change, error);
    } else {
        copy_map(window, placement);
    }
    atomic_store_explicit(&window->clock, without_map | EPLB_CLOCK_MAP, memory_order_release);
    (void)pthread_mutex_unlock(&window->readers);
    return status;
}
