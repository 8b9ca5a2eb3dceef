/* SPDX-License-Identifier: MIT */
/*
 * Packing with given counts, GPU by GPU, experts on each by rising rank. Of placements that differ
 * by the order of GPUs alike or of experts alike only one is looked at: that whose table of GPUs
 * and ranks, read row by row, has its first bits as early as possible. So GPUs alike come in
 * lexicographic order, and of experts alike the first that a GPU tells apart is the earlier
 * (double lexicographic order: Flener et al., "Breaking row and column symmetries in matrix
 * models", CP 2002).
 */
#include <string.h>

#include "ilp/exact_search.h"

static double peak_share(const eplb_exact *exact, int32_t place)
{
    double largest = 0.0;
    for (int32_t k = 0; k < exact->scenarios; k++) {
        double load = exact->load[(size_t)place * (size_t)exact->scenarios + (size_t)k];
        largest = load > largest ? load : largest;
    }
    return largest / (double)exact->count[place];
}

/* Ranks by falling share, equal ones by place, so that twins stay neighbours. */
static void rank_experts(eplb_exact *exact)
{
    for (int32_t p = 0; p < exact->experts; p++) {
        exact->low[p] = peak_share(exact, p);
        int32_t r = p;
        for (; r > 0 && exact->low[exact->place[r - 1]] < exact->low[p]; r--) {
            exact->place[r] = exact->place[r - 1];
        }
        exact->place[r] = p;
    }
    size_t scenarios = (size_t)exact->scenarios;
    exact->twin_ranks = 0;
    for (int32_t r = 0; r < exact->experts; r++) {
        int32_t p = exact->place[r];
        exact->left[r] = exact->count[p];
        for (size_t k = 0; k < scenarios; k++) {
            exact->share[(size_t)r * scenarios + k] =
                exact->load[(size_t)p * scenarios + k] / (double)exact->count[p];
        }
        bool twin = r > 0 && exact->place[r - 1] == p - 1 && (exact->twins >> p & 1u) != 0 &&
                    exact->count[p - 1] == exact->count[p];
        exact->twin_ranks |= (uint64_t)twin << r;
    }
}

static size_t fill_index(const eplb_exact *exact, int32_t rank, int32_t items)
{
    return ((size_t)rank * ((size_t)exact->most_room + 1) + (size_t)items) *
           (size_t)exact->scenarios;
}

/* Puts a share among the smallest so far, rising, or with its sign changed among the largest. */
static void insert(double *rising, int32_t count, int32_t capacity, double share)
{
    int32_t i = count < capacity ? count : capacity;
    for (; i > 0 && rising[i - 1] > share; i--) {
        if (i < capacity) {
            rising[i] = rising[i - 1];
        }
    }
    if (i < capacity) {
        rising[i] = share;
    }
}

static void sum_fills(eplb_exact *exact, int32_t scenario)
{
    double *smallest = exact->extreme;
    double *largest = exact->extreme + exact->most_room;
    size_t step = (size_t)exact->scenarios;
    for (int32_t r = exact->experts - 1; r >= 0; r--) {
        int32_t behind = exact->experts - 1 - r;
        double share = exact->share[(size_t)r * step + (size_t)scenario];
        insert(smallest, behind, exact->most_room, share);
        insert(largest, behind, exact->most_room, -share);
        double *least = exact->min_fill + fill_index(exact, r, 0) + scenario;
        double *most = exact->max_fill + fill_index(exact, r, 0) + scenario;
        for (int32_t m = 0; m <= behind && m < exact->most_room; m++) {
            least[step] = least[0] + smallest[m];
            most[step] = most[0] - largest[m];
            least += step;
            most += step;
        }
    }
}

/* What the GPU may and must hold, given what is left. */
static void open_gpu(eplb_exact *exact, int32_t gpu)
{
    const int32_t *later = exact->later_pins + (size_t)gpu * (size_t)exact->experts;
    uint64_t may = 0;
    uint64_t must = 0;
    for (int32_t r = 0; r < exact->experts; r++) {
        int32_t p = exact->place[r];
        bool pinned = (exact->pins[gpu] >> p & 1u) != 0;
        may |= (uint64_t)(exact->left[r] > later[p]) << r;
        must |= (uint64_t)(pinned || exact->left[r] == exact->gpus - gpu) << r;
    }
    if (gpu >= exact->last_alike) {
        must |= may & (~may + 1); /* GPUs behind come later in the order */
    }
    exact->may[gpu] = may;
    exact->must[gpu] = must;
    exact->held[gpu] = 0;
    memset(exact->partial + (size_t)(exact->first[gpu] + gpu) * (size_t)exact->scenarios, 0,
           (size_t)exact->scenarios * sizeof(*exact->partial));
}

/* All GPUs are filled with an objective below the cutoff. */
static void keep(eplb_exact *exact)
{
    double value = 0.0;
    const double *top = exact->top + (size_t)exact->gpus * (size_t)exact->scenarios;
    for (int32_t k = 0; k < exact->scenarios; k++) {
        value = eplb_exact_add(exact, value, k, top[k]);
    }
    exact->value = value;
    exact->cutoff = value * (1.0 - EPLB_EXACT_ROUNDING);
    for (int32_t g = 0; g < exact->gpus; g++) {
        int32_t slot = exact->task->first_slot[exact->gpu[g]];
        for (int32_t i = exact->first[g]; i < exact->first[g + 1]; i++) {
            exact->best[slot++] = exact->expert[exact->place[exact->item[i]]];
        }
    }
}

static void choose(eplb_exact *exact, int32_t gpu, int32_t index, int32_t from, bool follows);

/* The GPU is full: on to the next. */
static void close_gpu(eplb_exact *exact, int32_t gpu)
{
    size_t scenarios = (size_t)exact->scenarios;
    const double *load = exact->partial + (size_t)(exact->first[gpu + 1] + gpu) * scenarios;
    const double *top = exact->top + (size_t)gpu * scenarios;
    const double *rest = exact->rest + (size_t)gpu * scenarios;
    double *next_top = exact->top + (size_t)(gpu + 1) * scenarios;
    double *next_rest = exact->rest + (size_t)(gpu + 1) * scenarios;
    for (size_t k = 0; k < scenarios; k++) {
        next_top[k] = top[k] > load[k] ? top[k] : load[k];
        next_rest[k] = rest[k] - load[k];
    }
    if (gpu + 1 == exact->gpus) {
        keep(exact);
        return;
    }
    uint64_t held = exact->held[gpu];
    exact->tied[gpu + 1] = exact->tied[gpu] & ~(held ^ held << 1);
    open_gpu(exact, gpu + 1);
    choose(exact, gpu + 1, 0, 0, exact->alike[gpu + 1]);
}

/* Adds an expert to a GPU that takes so many more behind it; returns the bound of the objective. */
static double add_item(eplb_exact *exact, int32_t gpu, int32_t index, int32_t rank, int32_t more)
{
    size_t scenarios = (size_t)exact->scenarios;
    const double *share = exact->share + (size_t)rank * scenarios;
    const double *before = exact->partial + (size_t)(exact->first[gpu] + gpu + index) * scenarios;
    double *after = exact->partial + (size_t)(exact->first[gpu] + gpu + index + 1) * scenarios;
    const double *least = exact->min_fill + fill_index(exact, rank + 1, more);
    const double *most = exact->max_fill + fill_index(exact, rank + 1, more);
    const double *top = exact->top + (size_t)gpu * scenarios;
    const double *rest = exact->rest + (size_t)gpu * scenarios;
    double others = (double)(exact->gpus - gpu - 1);
    double value = 0.0;
    for (int32_t k = 0; k < exact->scenarios; k++) {
        after[k] = before[k] + share[k];
        double largest = after[k] + least[k];
        largest = largest > top[k] ? largest : top[k];
        double left = rest[k] - after[k] - most[k];
        if (others > 0.0 && left > largest * others) {
            largest = left / others;
        }
        value = eplb_exact_add(exact, value, k, largest);
    }
    return value;
}

/* The ranks from one on that may come next, when the GPU takes so many more with that. */
static uint64_t next_ranks(const eplb_exact *exact, int32_t gpu, int32_t from, int32_t items)
{
    uint64_t rest = ~(uint64_t)0 << from;
    uint64_t must = exact->must[gpu] & rest;
    int32_t needed = __builtin_popcountll(must);
    return needed > items ? 0 : needed == items ? must : exact->may[gpu] & rest;
}

/* Whether an expert would tell the GPU's twins apart the wrong way. */
static bool jumps_twin(const eplb_exact *exact, int32_t gpu, uint64_t rank)
{
    return (exact->tied[gpu] & exact->twin_ranks & rank) != 0 &&
           (exact->held[gpu] & rank >> 1) == 0;
}

/* Chooses the next expert of a GPU. `follows`: so far it has the same as the GPU before, which is
 * alike. */
static void choose(eplb_exact *exact, int32_t gpu, int32_t index, int32_t from, bool follows)
{
    int32_t room = exact->first[gpu + 1] - exact->first[gpu];
    if (index == room) {
        close_gpu(exact, gpu);
        return;
    }
    int32_t *item = exact->item + exact->first[gpu] + index;
    int32_t first = follows ? item[-room] : from;
    int32_t more = room - index - 1;
    uint64_t ranks = next_ranks(exact, gpu, from, more + 1);
    for (uint64_t bit = 0; ranks != 0 && (bit & exact->must[gpu]) == 0; ranks ^= bit) {
        bit = ranks & (~ranks + 1);
        int32_t r = __builtin_ctzll(ranks);
        if (r >= exact->experts - more) {
            break;
        }
        if (r >= first && !jumps_twin(exact, gpu, bit) &&
            eplb_exact_enter(exact, add_item(exact, gpu, index, r, more))) {
            *item = r;
            exact->held[gpu] |= bit;
            exact->left[r]--;
            choose(exact, gpu, index + 1, r + 1, follows && r == first);
            exact->left[r]++;
            exact->held[gpu] &= ~bit;
        }
    }
}

void eplb_exact_pack(eplb_exact *exact)
{
    rank_experts(exact);
    for (int32_t k = 0; k < exact->scenarios; k++) {
        sum_fills(exact, k);
        exact->top[k] = exact->floor[k];
        exact->rest[k] = exact->mean[k] * (double)exact->gpus;
    }
    exact->tied[0] = ~(uint64_t)0;
    open_gpu(exact, 0);
    choose(exact, 0, 0, 0, false);
}
