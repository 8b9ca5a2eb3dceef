/* SPDX-License-Identifier: MIT */
/* Replicas of given counts onto the GPUs of a small layer, GPU by GPU. */
#include "ilp/fewest_search.h"

#include <string.h>

/* Sums of loads, of the size of the number of GPUs, are off by less. */
#define ROUNDING 1e-11

/* To begin with counts takes a look at each expert on each GPU in each scenario; so many take as
 * long as a node. */
#define LOOKS_PER_NODE 64

static double *row_of(const eplb_fewest_search *s, double *rows, int32_t row)
{
    return rows + (size_t)row * (size_t)s->layer->scenarios;
}

/* The load of what a level has chosen before a place. */
static double *sum_at(const eplb_fewest_search *s, int32_t level, int32_t place)
{
    return row_of(s, s->sum, level * (s->layer->experts + 1) + place);
}

static double share_of(const eplb_fewest_search *s, int32_t scenario, int32_t place)
{
    return s->share[(size_t)scenario * (size_t)s->layer->experts + (size_t)place];
}

static void sort_by_share(eplb_fewest_search *s)
{
    double key[EPLB_FEWEST_MOST_EXPERTS];
    for (int32_t e = 0; e < s->layer->experts; e++) {
        double share = eplb_fewest_peak(s->layer, e) / (double)s->count[e];
        int32_t i = e;
        for (; i > 0 && key[i - 1] < share; i--) {
            key[i] = key[i - 1];
            s->by_share[i] = s->by_share[i - 1];
        }
        key[i] = share;
        s->by_share[i] = e;
    }
}

/* Places by share in one scenario, the smallest first. */
static void sort_places(eplb_fewest_search *s, int32_t k)
{
    int32_t experts = s->layer->experts;
    int32_t *sorted = s->sorted + (size_t)k * (size_t)experts;
    for (int32_t n = 0; n < experts; n++) {
        int32_t place = experts - 1 - n; /* nearly sorted */
        int32_t i = n;
        for (; i > 0 && share_of(s, k, sorted[i - 1]) > share_of(s, k, place); i--) {
            sorted[i] = sorted[i - 1];
        }
        sorted[i] = place;
    }
}

static void set_shares(eplb_fewest_search *s)
{
    const eplb_fewest_layer *layer = s->layer;
    int32_t experts = layer->experts;
    for (int32_t k = 0; k < layer->scenarios; k++) {
        const double *load = layer->load + (size_t)k * (size_t)experts;
        double *share = s->share + (size_t)k * (size_t)experts;
        double *smallest = s->smallest + (size_t)k * (size_t)(experts + 1);
        double *largest = s->largest + (size_t)k * (size_t)(experts + 1);
        double total = 0.0;
        smallest[experts] = 0.0;
        largest[experts] = 0.0;
        for (int32_t i = experts - 1; i >= 0; i--) {
            int32_t e = s->by_share[i];
            share[i] = load[e] / (double)s->count[e];
            total += load[e];
            bool is_last = i == experts - 1;
            smallest[i] = is_last || share[i] < smallest[i + 1] ? share[i] : smallest[i + 1];
            largest[i] = share[i] > largest[i + 1] ? share[i] : largest[i + 1];
        }
        s->rest[k] = total;
        sort_places(s, k);
    }
    for (int32_t i = 0; i < experts; i++) {
        s->left[i] = s->count[s->by_share[i]];
    }
}

/* The sum of the `home` smallest (or largest) shares at home and the `away` smallest of others;
 * negative when there are not so many. */
static double extreme_sum(const eplb_fewest_search *s, int32_t k, uint64_t at_home, int32_t home,
                          int32_t away, bool largest)
{
    int32_t experts = s->layer->experts;
    const int32_t *sorted = s->sorted + (size_t)k * (size_t)experts;
    double sum = 0.0;
    for (int32_t n = 0; n < experts && home + away > 0; n++) {
        int32_t place = sorted[largest ? experts - 1 - n : n];
        int32_t *wanted = (at_home >> place & 1u) != 0 ? &home : &away;
        if (*wanted > 0) {
            --*wanted;
            sum += share_of(s, k, place);
        }
    }
    return home + away > 0 ? -1.0 : sum;
}

/* Whether some experts, so many of them copies, may be of the right load. */
static bool may_do(const eplb_fewest_search *s, const eplb_fewest_level *level, int32_t copies)
{
    int32_t kept = level->slots - copies;
    for (int32_t k = 0; k < s->layer->scenarios; k++) {
        double least = extreme_sum(s, k, level->home, kept, copies, false);
        if (least < 0.0 || least > s->cap[k] ||
            extreme_sum(s, k, level->home, kept, copies, true) < s->floor[k]) {
            return false;
        }
    }
    return s->layer->scenarios > 0 || kept <= __builtin_popcountll(level->home);
}

/* The fewest copies with which a level may do; one more than its slots when there is no way. */
static int32_t fewest_copies(const eplb_fewest_search *s, const eplb_fewest_level *level)
{
    int32_t copies = 0;
    while (copies <= level->slots && !may_do(s, level, copies)) {
        copies++;
    }
    return copies;
}

/* What the loads of a level may be, when `levels` are left with it. */
static void set_range(eplb_fewest_search *s, int32_t l, int32_t levels)
{
    const double *worst = row_of(s, s->worst, l);
    for (int32_t k = 0; k < s->layer->scenarios; k++) {
        double cap = eplb_fewest_cap(s, worst, k);
        row_of(s, s->cap, l)[k] = cap;
        row_of(s, s->floor, l)[k] =
            row_of(s, s->rest, l)[k] - (double)(levels - 1) * cap - ROUNDING;
    }
}

/* Bits by expert to bits by place. */
static uint64_t by_place(const eplb_fewest_search *s, uint64_t experts)
{
    uint64_t places = 0;
    for (int32_t i = 0; i < s->layer->experts; i++) {
        places |= (experts >> s->by_share[i] & 1u) << i;
    }
    return places;
}

static bool is_alike(const eplb_fewest_level *a, const eplb_fewest_level *b)
{
    return a->slots == b->slots && a->home == b->home;
}

/* GPUs that take many copies first: least can be done about them. Equal ones side by side. */
static bool comes_before(const eplb_fewest_level *a, const eplb_fewest_level *b)
{
    if (a->fewest != b->fewest) {
        return a->fewest > b->fewest;
    }
    return a->slots != b->slots ? a->slots > b->slots : a->home < b->home;
}

/* False when the GPUs need more copies than there may be. */
static bool order_levels(eplb_fewest_search *s)
{
    const eplb_fewest_layer *layer = s->layer;
    int32_t needed = 0;
    for (int32_t g = 0; g < layer->gpus; g++) {
        eplb_fewest_level level = {.gpu = g,
                                   .slots = layer->first[g + 1] - layer->first[g],
                                   .home = by_place(s, s->home[g])};
        level.fewest = fewest_copies(s, &level);
        needed += level.fewest;
        if (level.fewest > level.slots || needed > s->copies) {
            return false;
        }
        int32_t l = g;
        for (; l > 0 && comes_before(&level, &s->level[l - 1]); l--) {
            s->level[l] = s->level[l - 1];
        }
        s->level[l] = level;
    }
    s->level[layer->gpus] = (eplb_fewest_level){0};
    uint8_t *homes = s->later_homes + (size_t)layer->gpus * (size_t)layer->experts;
    memset(homes, 0, (size_t)layer->experts);
    for (int32_t l = layer->gpus - 1; l >= 0; l--) {
        eplb_fewest_level *level = &s->level[l];
        level->fewest_rest = level->fewest + s->level[l + 1].fewest_rest;
        level->like_last = l > 0 && is_alike(level, level - 1);
        homes -= layer->experts;
        for (int32_t i = 0; i < layer->experts; i++) {
            homes[i] = (uint8_t)(homes[layer->experts + i] + (level->home >> i & 1u));
        }
    }
    return true;
}

static eplb_fewest_end finish(eplb_fewest_search *s)
{
    const eplb_fewest_layer *layer = s->layer;
    for (int32_t l = 0; l < layer->gpus; l++) {
        int32_t slot = layer->first[s->level[l].gpu];
        for (int32_t i = 0; i < layer->experts; i++) {
            if ((s->level[l].chosen >> i & 1u) != 0) {
                s->chosen[slot++] = s->by_share[i];
            }
        }
    }
    double value;
    s->layer->failure = eplb_fewest_offer(s->layer, s->chosen, &value, s->error);
    if (s->layer->failure != EPLB_OK) {
        return EPLB_FEWEST_FAILED;
    }
    return value <= s->layer->limit ? EPLB_FEWEST_FOUND : EPLB_FEWEST_NOTHING;
}

/* Copies that the GPUs after a level take at least, by the replicas that are left. */
static int32_t copies_after(const eplb_fewest_search *s, int32_t l)
{
    const uint8_t *homes = s->later_homes + (size_t)(l + 1) * (size_t)s->layer->experts;
    int32_t copies = 0;
    for (int32_t i = 0; i < s->layer->experts; i++) {
        copies += s->left[i] > homes[i] ? s->left[i] - homes[i] : 0;
    }
    int32_t by_loads = s->level[l + 1].fewest_rest;
    return copies > by_loads ? copies : by_loads;
}

static eplb_fewest_end open_level(eplb_fewest_search *s, int32_t l, int32_t copies);

/* The experts of a level are chosen: on to the next one, with so many copies left. */
static eplb_fewest_end close_level(eplb_fewest_search *s, int32_t l, int32_t place, int32_t copies)
{
    const eplb_fewest_level *level = &s->level[l];
    const double *sum = sum_at(s, l, place);
    double mean = 0.0;
    for (int32_t k = 0; k < s->layer->scenarios; k++) {
        double worst = row_of(s, s->worst, l)[k];
        if (sum[k] < row_of(s, s->floor, l)[k]) {
            return EPLB_FEWEST_NOTHING;
        }
        worst = sum[k] > worst ? sum[k] : worst;
        row_of(s, s->worst, l + 1)[k] = worst;
        row_of(s, s->rest, l + 1)[k] = row_of(s, s->rest, l)[k] - sum[k];
        mean += s->layer->weight[k] * worst;
    }
    if (s->layer->by_mean && mean > s->loose) {
        return EPLB_FEWEST_NOTHING;
    }
    for (int32_t i = 0; i < s->layer->experts; i++) {
        s->left[i] -= (int32_t)(level->chosen >> i & 1u);
    }
    eplb_fewest_end end =
        copies_after(s, l) <= copies ? open_level(s, l + 1, copies) : EPLB_FEWEST_NOTHING;
    for (int32_t i = 0; i < s->layer->experts; i++) {
        s->left[i] += (int32_t)(level->chosen >> i & 1u);
    }
    return end;
}

/* Whether `slots` more experts from a place on may bring the loads into the level's range. */
static bool can_reach(const eplb_fewest_search *s, int32_t l, int32_t place, int32_t slots)
{
    const double *sum = sum_at(s, l, place);
    for (int32_t k = 0; k < s->layer->scenarios; k++) {
        size_t i = (size_t)k * (size_t)(s->layer->experts + 1) + (size_t)place;
        if (sum[k] + (double)slots * s->smallest[i] > row_of(s, s->cap, l)[k] ||
            sum[k] + (double)slots * s->largest[i] < row_of(s, s->floor, l)[k]) {
            return false;
        }
    }
    return true;
}

/* What a level has chosen so far. */
typedef struct state {
    int32_t place; /* of the next expert to decide about */
    int32_t slots; /* that are still to be filled */
    int32_t taken; /* copies */
    bool tight;    /* like the level before so far; of equal GPUs the first has the larger bits,
                    * read from the first place on */
} state;

static eplb_fewest_end choose(eplb_fewest_search *s, int32_t l, state at);

/* Takes the expert at this place, or leaves it, where that is allowed. */
static eplb_fewest_end decide(eplb_fewest_search *s, int32_t l, state at, bool take)
{
    eplb_fewest_level *level = &s->level[l];
    uint64_t bit = (uint64_t)1 << at.place;
    bool last_took = at.tight && (s->level[l - 1].chosen & bit) != 0;
    if (take ? (level->allowed & bit) == 0 || (at.tight && !last_took)
             : (level->required & bit) != 0) {
        return EPLB_FEWEST_NOTHING;
    }
    int32_t copy = take && (level->home & bit) == 0 ? 1 : 0;
    if (at.taken + copy > level->most) {
        return EPLB_FEWEST_NOTHING;
    }
    const double *sum = sum_at(s, l, at.place);
    double *next = sum_at(s, l, at.place + 1);
    for (int32_t k = 0; k < s->layer->scenarios; k++) {
        next[k] = take ? sum[k] + share_of(s, k, at.place) : sum[k];
    }
    level->chosen = take ? level->chosen | bit : level->chosen;
    state after = {.place = at.place + 1,
                   .slots = at.slots - (take ? 1 : 0),
                   .taken = at.taken + copy,
                   .tight = at.tight && take == last_took};
    eplb_fewest_end end = choose(s, l, after);
    level->chosen &= ~bit;
    return end;
}

static eplb_fewest_end choose(eplb_fewest_search *s, int32_t l, state at)
{
    if (!eplb_fewest_spend(s->layer, 1)) {
        return EPLB_FEWEST_ENDED;
    }
    const eplb_fewest_level *level = &s->level[l];
    if (!can_reach(s, l, at.place, at.slots)) {
        return EPLB_FEWEST_NOTHING;
    }
    if (at.slots == 0) {
        return (level->required & ~level->chosen) == 0
                   ? close_level(s, l, at.place, level->copies - at.taken)
                   : EPLB_FEWEST_NOTHING;
    }
    if (at.place == s->layer->experts ||
        __builtin_popcountll(level->allowed >> at.place) < at.slots) {
        return EPLB_FEWEST_NOTHING;
    }
    bool at_home = (level->home >> at.place & 1u) != 0;
    eplb_fewest_end end = decide(s, l, at, at_home);
    return end == EPLB_FEWEST_NOTHING ? decide(s, l, at, !at_home) : end;
}

static eplb_fewest_end open_level(eplb_fewest_search *s, int32_t l, int32_t copies)
{
    const eplb_fewest_layer *layer = s->layer;
    if (l == layer->gpus) {
        return finish(s);
    }
    eplb_fewest_level *level = &s->level[l];
    int32_t levels = layer->gpus - l;
    level->copies = copies;
    level->most = copies - s->level[l + 1].fewest_rest;
    level->chosen = 0;
    level->allowed = 0;
    level->required = 0;
    for (int32_t i = 0; i < layer->experts; i++) {
        level->allowed |= (uint64_t)(s->left[i] > 0) << i;
        level->required |= (uint64_t)(s->left[i] >= levels) << i;
    }
    if (level->most < level->fewest || __builtin_popcountll(level->required) > level->slots) {
        return EPLB_FEWEST_NOTHING;
    }
    set_range(s, l, levels);
    for (int32_t k = 0; k < layer->scenarios; k++) {
        sum_at(s, l, 0)[k] = 0.0;
    }
    return choose(s, l, (state){.slots = level->slots, .tight = level->like_last});
}

eplb_fewest_end eplb_fewest_pack(eplb_fewest_search *s)
{
    const eplb_fewest_layer *layer = s->layer;
    int64_t looks = (int64_t)layer->experts * layer->gpus * layer->scenarios;
    if (!eplb_fewest_spend(s->layer, looks / LOOKS_PER_NODE)) {
        return EPLB_FEWEST_ENDED;
    }
    sort_by_share(s);
    set_shares(s);
    set_range(s, 0, layer->gpus);
    return order_levels(s) ? open_level(s, 0, s->copies) : EPLB_FEWEST_NOTHING;
}
