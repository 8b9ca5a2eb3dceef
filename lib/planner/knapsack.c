/* SPDX-License-Identifier: MIT */
/*
 * Dynamic programming over the groups. After each group there is a list of states, sums of slots
 * and costs of one choice in each group so far; a state that another one beats in both is dropped,
 * so slots rise and costs fall along the list.
 */
#include "planner/knapsack.h"

#include "base/memory.h"

typedef struct state {
    int64_t slots;
    double cost;
    int32_t parent; /* its place in the list of the group before */
    int32_t choice; /* within the group */
} state;

typedef struct list {
    state *states;
    int32_t count;
} list;

typedef struct knapsack {
    const eplb_hooks *hooks;
    const eplb_choice *choices;
    const int32_t *first;
    int32_t groups;
    list *lists; /* [groups + 1]; the first has the sum of nothing */
} knapsack;

static int64_t fewest_slots(const knapsack *self, int32_t group)
{
    int64_t fewest = self->choices[self->first[group]].slots;
    for (int32_t c = self->first[group]; c < self->first[group + 1]; c++) {
        fewest = self->choices[c].slots < fewest ? self->choices[c].slots : fewest;
    }
    return fewest;
}

/* States of the group before with one choice added, in the order of their slots. */
typedef struct shifted {
    const list *before;
    int32_t next;
    int32_t choice;
    eplb_choice added;
} shifted;

static bool take_shifted(const shifted *from, int64_t limit, state *taken)
{
    if (from->next == from->before->count) {
        return false;
    }
    const state *parent = &from->before->states[from->next];
    *taken = (state){.slots = parent->slots + from->added.slots,
                     .cost = parent->cost + from->added.cost,
                     .parent = from->next,
                     .choice = from->choice};
    return taken->slots <= limit;
}

/* Appends a state unless the last one, which has no more slots, costs no more. */
static void append(list *to, const state *added)
{
    if (to->count == 0 || added->cost < to->states[to->count - 1].cost) {
        to->states[to->count++] = *added;
    }
}

/* Merges the states known with those of one more choice; of equal ones the earlier stays. */
static void merge(const list *known, shifted *more, int64_t limit, list *to)
{
    int32_t next = 0;
    state added;
    to->count = 0;
    for (;;) {
        bool has_more = take_shifted(more, limit, &added);
        if (next == known->count && !has_more) {
            return;
        }
        const state *old = &known->states[next];
        bool takes_old =
            !has_more ||
            (next < known->count &&
             (old->slots < added.slots || (old->slots == added.slots && old->cost <= added.cost)));
        append(to, takes_old ? old : &added);
        next += takes_old ? 1 : 0;
        more->next += takes_old ? 0 : 1;
    }
}

/* The most states that a group can have: one for each sum of slots, or for each pair of a state
 * before and a choice. False when that is too many to be numbered. */
static bool most_states(const knapsack *self, int32_t group, int64_t least, int64_t limit,
                        int32_t *most)
{
    int64_t pairs =
        (int64_t)self->lists[group].count * (self->first[group + 1] - self->first[group]);
    int64_t sums = limit - least + 1;
    int64_t fewer = pairs < sums ? pairs : sums;
    *most = fewer <= INT32_MAX ? (int32_t)fewer : 0;
    return fewer <= INT32_MAX;
}

/* Makes the states of a group, whose slots are at most `limit`, from those of the group before.
 * Two buffers take turns; the one with the last merge becomes the group's list. */
static eplb_status add_group(knapsack *self, int32_t group, int64_t limit, eplb_error *error)
{
    const list *before = &self->lists[group];
    int64_t least = before->states[0].slots + fewest_slots(self, group);
    int32_t most;
    if (!most_states(self, group, least, limit, &most)) {
        return eplb_error_set(error, EPLB_ERROR_OVERFLOW, "knapsack: too many states");
    }
    list known = {.states = eplb_alloc(self->hooks, (size_t)most, sizeof(state))};
    list merged = {.states = eplb_alloc(self->hooks, (size_t)most, sizeof(state))};
    if (known.states == NULL || merged.states == NULL) {
        eplb_free(self->hooks, known.states);
        eplb_free(self->hooks, merged.states);
        return eplb_out_of_memory(error);
    }
    for (int32_t c = self->first[group]; c < self->first[group + 1]; c++) {
        shifted more = {
            .before = before, .choice = c - self->first[group], .added = self->choices[c]};
        merge(&known, &more, limit, &merged);
        list swapped = known;
        known = merged;
        merged = swapped;
    }
    eplb_free(self->hooks, merged.states);
    self->lists[group + 1] = known;
    return EPLB_OK;
}

static eplb_status solve(knapsack *self, int64_t capacity, int32_t *chosen, eplb_error *error)
{
    int64_t needed = 0;
    for (int32_t g = 0; g < self->groups; g++) {
        needed += fewest_slots(self, g);
    }
    if (needed > capacity) {
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "%lld slots do not hold the smallest choices: they need %lld",
                              (long long)capacity, (long long)needed);
    }
    self->lists[0].states = eplb_alloc_zeroed(self->hooks, 1, sizeof(state));
    self->lists[0].count = 1;
    eplb_status status = self->lists[0].states != NULL ? EPLB_OK : eplb_out_of_memory(error);
    int64_t limit = capacity - needed;
    for (int32_t g = 0; g < self->groups && status == EPLB_OK; g++) {
        limit += fewest_slots(self, g);
        status = add_group(self, g, limit, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    int32_t at = self->lists[self->groups].count - 1; /* the cheapest */
    for (int32_t g = self->groups; g > 0; g--) {
        const state *last = &self->lists[g].states[at];
        chosen[g - 1] = last->choice;
        at = last->parent;
    }
    return EPLB_OK;
}

eplb_status eplb_knapsack_solve(const eplb_hooks *hooks, const eplb_choice *choices,
                                const int32_t *first, int32_t groups, int64_t capacity,
                                int32_t *chosen, eplb_error *error)
{
    knapsack self = {.hooks = hooks, .choices = choices, .first = first, .groups = groups};
    self.lists = eplb_alloc_zeroed(hooks, (size_t)groups + 1, sizeof(*self.lists));
    if (self.lists == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = solve(&self, capacity, chosen, error);
    for (int32_t g = 0; g <= groups; g++) {
        eplb_free(hooks, self.lists[g].states);
    }
    eplb_free(hooks, self.lists);
    return status;
}
