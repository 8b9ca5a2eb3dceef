/* SPDX-License-Identifier: MIT */
/* From a task to the arrays of a search. */
#include <string.h>

#include "base/memory.h"
#include "ilp/exact_search.h"

/* A node looks at each expert in each scenario; so many looks take some milliseconds. */
#define PATIENCE 65536

#define ARRAY(member, length) EPLB_ARRAY(exact->member, length)

static eplb_status make_arrays(eplb_exact *exact, const eplb_hooks *hooks, eplb_error *error)
{
    size_t experts = (size_t)exact->experts; /* these are so small that no size overflows */
    size_t gpus = (size_t)exact->gpus;
    size_t slots = (size_t)exact->task->slots;
    size_t scenarios = (size_t)exact->scenarios;
    size_t fills = (experts + 1) * ((size_t)exact->most_room + 1) * scenarios;
    const eplb_array arrays[] = {
        ARRAY(gpu, gpus),
        ARRAY(first, gpus + 1),
        ARRAY(room_rising, gpus),
        ARRAY(alike, gpus),
        ARRAY(expert, experts),
        ARRAY(load, experts * scenarios),
        ARRAY(mean, scenarios),
        ARRAY(pins, gpus),
        ARRAY(later_pins, gpus * experts),
        ARRAY(required, experts),
        ARRAY(usual, experts),
        ARRAY(fewest, experts),
        ARRAY(most, experts),
        ARRAY(fewest_sum, experts + 1),
        ARRAY(most_sum, experts + 1),
        ARRAY(count, experts),
        ARRAY(low, experts),
        ARRAY(copies, experts),
        ARRAY(sorted, scenarios * experts),
        ARRAY(floor, scenarios),
        ARRAY(least, (size_t)exact->most_room + 1),
        ARRAY(extreme, 2 * (size_t)exact->most_room),
        ARRAY(place, experts),
        ARRAY(share, experts * scenarios),
        ARRAY(min_fill, fills),
        ARRAY(max_fill, fills),
        ARRAY(left, experts),
        ARRAY(may, gpus),
        ARRAY(must, gpus),
        ARRAY(held, gpus),
        ARRAY(tied, gpus + 1),
        ARRAY(item, slots),
        ARRAY(partial, (slots + gpus) * scenarios),
        ARRAY(top, (gpus + 1) * scenarios),
        ARRAY(rest, (gpus + 1) * scenarios),
        ARRAY(best, slots),
    };
    return eplb_alloc_arrays(hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

void eplb_exact_free(eplb_exact *exact, const eplb_hooks *hooks)
{
    void *arrays[] = {exact->gpu,        exact->first,      exact->room_rising, exact->alike,
                      exact->expert,     exact->load,       exact->mean,        exact->pins,
                      exact->later_pins, exact->usual,      exact->required,    exact->fewest,
                      exact->most,       exact->fewest_sum, exact->most_sum,    exact->count,
                      exact->low,        exact->copies,     exact->sorted,      exact->floor,
                      exact->least,      exact->extreme,    exact->place,       exact->share,
                      exact->min_fill,   exact->max_fill,   exact->left,        exact->may,
                      exact->must,       exact->held,       exact->tied,        exact->item,
                      exact->partial,    exact->top,        exact->rest,        exact->best};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(hooks, arrays[i]);
    }
    *exact = (eplb_exact){0};
}

static int32_t room_of(const eplb_refine_task *task, int32_t gpu)
{
    return task->first_slot[gpu + 1] - task->first_slot[gpu];
}

static void measure_gpus(eplb_exact *exact)
{
    for (int32_t g = 0; g < exact->task->gpus; g++) {
        int32_t room = room_of(exact->task, g);
        exact->gpus += room > 0 ? 1 : 0;
        exact->most_room = room > exact->most_room ? room : exact->most_room;
    }
}

/* The largest load that an expert has in any scenario. */
static double peak_load(const eplb_refine_task *task, int32_t expert)
{
    double largest = 0.0;
    for (int32_t k = 0; k < task->scenarios; k++) {
        double load = task->loads[(size_t)k * (size_t)task->experts + (size_t)expert];
        largest = load > largest ? load : largest;
    }
    return largest;
}

/* Below 0, 0 or above 0: expert a goes before, with or behind b, which may be exchanged. */
static int compare_experts(const eplb_refine_task *task, int32_t a, int32_t b)
{
    double difference = peak_load(task, b) - peak_load(task, a);
    for (int32_t k = 0; k < task->scenarios && difference == 0.0; k++) {
        const double *loads = task->loads + (size_t)k * (size_t)task->experts;
        difference = loads[b] - loads[a];
    }
    return (difference > 0.0) - (difference < 0.0);
}

static void order_experts(eplb_exact *exact)
{
    for (int32_t e = 0; e < exact->experts; e++) {
        int32_t p = e;
        for (; p > 0 && compare_experts(exact->task, exact->expert[p - 1], e) > 0; p--) {
            exact->expert[p] = exact->expert[p - 1];
        }
        exact->expert[p] = e;
    }
}

static void take_loads(eplb_exact *exact)
{
    const eplb_refine_task *task = exact->task;
    for (int32_t k = 0; k < exact->scenarios; k++) {
        double total = 0.0;
        for (int32_t p = 0; p < exact->experts; p++) {
            double load = task->loads[(size_t)k * (size_t)task->experts + (size_t)exact->expert[p]];
            exact->load[(size_t)p * (size_t)exact->scenarios + (size_t)k] = load;
            exact->sorted[(size_t)k * (size_t)exact->experts + (size_t)p] = p;
            total += load;
        }
        exact->mean[k] = total / (double)exact->gpus;
    }
}

/* The places of the experts that are pinned to a GPU of the task. */
static uint64_t pins_of(const eplb_exact *exact, int32_t gpu)
{
    const eplb_refine_task *task = exact->task;
    uint64_t pins = 0;
    for (int32_t s = task->first_slot[gpu]; task->pinned != NULL && s < task->first_slot[gpu + 1];
         s++) {
        for (int32_t p = 0; task->pinned[s] != 0 && p < exact->experts; p++) {
            pins |= (uint64_t)(exact->expert[p] == task->placement[s]) << p;
        }
    }
    return pins;
}

/* GPUs with pins go first, and then those with fewer slots. */
static bool goes_before(const eplb_exact *exact, int32_t a, int32_t b)
{
    uint64_t pins_a = pins_of(exact, a);
    uint64_t pins_b = pins_of(exact, b);
    return pins_a != pins_b ? pins_a > pins_b : room_of(exact->task, a) < room_of(exact->task, b);
}

static void order_gpus(eplb_exact *exact)
{
    int32_t count = 0;
    for (int32_t g = 0; g < exact->task->gpus; g++) {
        int32_t i = count;
        if (room_of(exact->task, g) == 0) {
            continue;
        }
        for (; i > 0 && goes_before(exact, g, exact->gpu[i - 1]); i--) {
            exact->gpu[i] = exact->gpu[i - 1];
        }
        exact->gpu[i] = g;
        count++;
    }
}

static void take_gpus(eplb_exact *exact)
{
    for (int32_t g = 0; g < exact->gpus; g++) {
        int32_t room = room_of(exact->task, exact->gpu[g]);
        exact->first[g + 1] = exact->first[g] + room;
        exact->pins[g] = pins_of(exact, exact->gpu[g]);
        exact->alike[g] = g > 0 && exact->pins[g] == exact->pins[g - 1] &&
                          room == room_of(exact->task, exact->gpu[g - 1]);
        exact->last_alike = exact->alike[g] ? exact->last_alike : g;
        int32_t i = g;
        for (; i > 0 && exact->room_rising[i - 1] > room; i--) {
            exact->room_rising[i] = exact->room_rising[i - 1];
        }
        exact->room_rising[i] = room;
    }
}

/* Pins of each place behind each GPU, and the replicas that pins and the task require. */
static void require_counts(eplb_exact *exact)
{
    int32_t least = exact->task->min_replicas;
    least = least < exact->gpus ? least : exact->gpus;
    for (int32_t p = 0; p < exact->experts; p++) {
        int32_t pins = 0;
        for (int32_t g = exact->gpus - 1; g >= 0; g--) {
            exact->later_pins[(size_t)g * (size_t)exact->experts + (size_t)p] = pins;
            pins += (int32_t)(exact->pins[g] >> p & 1u);
        }
        exact->required[p] = pins > least ? pins : least;
    }
}

static void count_replicas(eplb_exact *exact)
{
    for (int32_t p = 0; p < exact->experts; p++) {
        for (int32_t s = 0; s < exact->task->slots; s++) {
            exact->usual[p] += exact->task->placement[s] == exact->expert[p] ? 1 : 0;
        }
    }
}

static void find_twins(eplb_exact *exact)
{
    uint64_t pinned = 0;
    for (int32_t g = 0; g < exact->gpus; g++) {
        pinned |= exact->pins[g];
    }
    for (int32_t p = 1; p < exact->experts; p++) {
        bool same = compare_experts(exact->task, exact->expert[p - 1], exact->expert[p]) == 0;
        bool free = (pinned >> (p - 1) & 3u) == 0;
        exact->twins |= (uint64_t)(same && free) << p;
    }
}

eplb_status eplb_exact_init(eplb_exact *exact, const eplb_hooks *hooks,
                            const eplb_refine_task *task, eplb_error *error)
{
    *exact = (eplb_exact){
        .task = task, .experts = task->experts, .scenarios = task->scenarios, .value = task->value};
    exact->patience = PATIENCE / (task->experts * task->scenarios); /* at least 16 */
    exact->bound_nodes = task->experts * task->scenarios / EPLB_EXACT_LOOKS;
    measure_gpus(exact);
    eplb_status status = make_arrays(exact, hooks, error);
    if (status != EPLB_OK) {
        eplb_exact_free(exact, hooks);
        return status;
    }
    order_experts(exact);
    take_loads(exact);
    order_gpus(exact);
    take_gpus(exact);
    require_counts(exact);
    count_replicas(exact);
    find_twins(exact);
    memcpy(exact->best, task->placement, (size_t)task->slots * sizeof(*exact->best));
    return EPLB_OK;
}
