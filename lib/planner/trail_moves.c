/* SPDX-License-Identifier: MIT */
/* The moves of a state: those that take load off its busiest GPU. */
#include "planner/trail.h"

/* Shares and loads are [groups] lanes. */
static inline const eplb_lanes *share_of(const eplb_trail *trail, int32_t expert)
{
    return trail->share + (size_t)expert * (size_t)trail->groups;
}

static inline const eplb_lanes *height_of(const eplb_trail *trail, int32_t gpu)
{
    return trail->height + (size_t)gpu * (size_t)trail->groups;
}

/* What the loads above the threshold count beside their excess. */
static inline eplb_lanes charge_of(const eplb_trail *trail, eplb_lanes over)
{
    return eplb_lanes_smaller(eplb_lanes_of(trail->charge_slope) * over,
                              eplb_lanes_of(trail->charge));
}

/* What loads have above the threshold, and their charge, lane by lane. */
static inline eplb_lanes excess_of(const eplb_trail *trail, eplb_lanes load, eplb_lanes weight)
{
    eplb_lanes over = eplb_lanes_positive(load - eplb_lanes_of(trail->threshold));
    eplb_lanes steep = eplb_lanes_of(1.0f) + eplb_lanes_of(trail->steepness) * over;
    return weight * (over * steep + charge_of(trail, over));
}

/* Excess of a GPU whose load is height + plus - minus. */
static inline float excess_with(const eplb_trail *trail, const eplb_lanes *height,
                                const eplb_lanes *plus, const eplb_lanes *minus)
{
    eplb_lanes sum = eplb_lanes_of(0.0f);
    for (int32_t i = 0; i < trail->groups; i++) {
        sum += excess_of(trail, height[i] + (plus[i] - minus[i]), trail->weight[i]);
    }
    return eplb_lanes_sum(sum);
}

/* What the state has more to copy when a GPU gets f and loses e. */
static inline int32_t price_of(const eplb_trail *trail, int32_t gpu, int32_t f, int32_t e)
{
    return !eplb_trail_is_home(trail, gpu, f) - !eplb_trail_is_home(trail, gpu, e);
}

/* Whether a GPU may take as many copies more. */
static inline bool may_take(const eplb_trail *trail, int32_t gpu, int32_t price)
{
    return trail->most_incoming < 0 || price <= 0 ||
           trail->incoming[gpu] + price <= trail->most_incoming;
}

static void sum_heights(eplb_trail *trail)
{
    const eplb_shape *shape = trail->shape;
    size_t groups = (size_t)trail->groups;
    trail->total = 0.0f;
    for (int32_t g = 0; g < shape->gpus; g++) {
        eplb_lanes *height = trail->height + (size_t)g * groups;
        for (size_t i = 0; i < groups; i++) {
            height[i] = eplb_lanes_of(0.0f);
        }
        for (int32_t s = shape->first_slot[g]; s < shape->first_slot[g + 1]; s++) {
            const eplb_lanes *share = share_of(trail, trail->layer->slot_expert[s]);
            for (size_t i = 0; i < groups; i++) {
                height[i] += share[i];
            }
        }
        trail->excess[g] = excess_with(trail, height, trail->none, trail->none);
        trail->total += trail->excess[g];
    }
    for (int32_t e = 0; e < shape->experts; e++) {
        trail->relief[e] = 0.0f;
    }
    for (int32_t s = 0; s < shape->slots; s++) {
        trail->relief[trail->layer->slot_expert[s]] += trail->excess[shape->slot_gpu[s]];
    }
}

/* Fills change with what `more` replicas, or less, do to an expert's share. */
static void change_share(const eplb_trail *trail, int32_t expert, int32_t more, eplb_lanes *change)
{
    const eplb_lanes *load = trail->load + (size_t)expert * (size_t)trail->groups;
    const eplb_lanes *share = share_of(trail, expert);
    eplb_lanes part = eplb_lanes_of(1.0f / (float)(trail->layer->count[expert] + more));
    for (int32_t i = 0; i < trail->groups; i++) {
        change[i] = load[i] * part - share[i];
    }
}

/* By how much the excess of the GPUs that hold an expert changes with its share, but for the one
 * that slot `without` is on. */
static float excess_of_holders(const eplb_trail *trail, int32_t expert, int32_t without,
                               const eplb_lanes *change)
{
    const eplb_layer *layer = trail->layer;
    float sum = 0.0f;
    for (int32_t s = layer->first[expert]; s >= 0; s = layer->next[s]) {
        if (s != without) {
            int32_t gpu = trail->shape->slot_gpu[s];
            sum +=
                excess_with(trail, height_of(trail, gpu), change, trail->none) - trail->excess[gpu];
        }
    }
    return sum;
}

/* GPUs that hold two experts see both their shares change: what that is beyond the sum of the two
 * alone. */
static float excess_of_overlap(const eplb_trail *trail, int32_t e, int32_t f, int32_t without)
{
    const eplb_layer *layer = trail->layer;
    float sum = 0.0f;
    for (int32_t s = layer->first[f]; s >= 0; s = layer->next[s]) {
        int32_t gpu = trail->shape->slot_gpu[s];
        if (gpu == without || !eplb_layer_holds(layer, gpu, e)) {
            continue;
        }
        const eplb_lanes *height = height_of(trail, gpu);
        for (int32_t i = 0; i < trail->groups; i++) {
            trail->both[i] = trail->gain[i] + trail->loss[i];
        }
        sum += excess_with(trail, height, trail->both, trail->none) -
               excess_with(trail, height, trail->gain, trail->none) -
               excess_with(trail, height, trail->loss, trail->none) + trail->excess[gpu];
    }
    return sum;
}

static void find_donors(eplb_trail *trail)
{
    const eplb_layer *layer = trail->layer;
    trail->donors = 0;
    for (int32_t s = 0; s < trail->shape->slots; s++) {
        int32_t expert = layer->slot_expert[s];
        if (layer->count[expert] > 1) {
            change_share(trail, expert, -1, trail->loss);
            trail->donor[trail->donors] = s;
            trail->donor_excess[trail->donors++] = excess_of_holders(trail, expert, s, trail->loss);
        }
    }
}

/* Excess of a GPU that gets a further replica of f, whose share changes by trail->gain, instead of
 * e. */
static float excess_of_replacement(eplb_trail *trail, int32_t gpu, int32_t e, int32_t f)
{
    const eplb_lanes *share = share_of(trail, f);
    for (int32_t i = 0; i < trail->groups; i++) {
        trail->both[i] = share[i] + trail->gain[i];
    }
    return excess_with(trail, height_of(trail, gpu), trail->both, share_of(trail, e));
}

/* A slot gets a further replica of expert f. */
static void offer_replacement(eplb_trail *trail, int32_t slot, int32_t f, float excess)
{
    int32_t gpu = trail->shape->slot_gpu[slot];
    int32_t e = trail->layer->slot_expert[slot];
    int32_t price = price_of(trail, gpu, f, e);
    if (!may_take(trail, gpu, price)) {
        return;
    }
    const eplb_trail_move move = {.excess = excess,
                                  .parent = trail->state,
                                  .slot = slot,
                                  .other = -1,
                                  .expert = f,
                                  .key =
                                      trail->key ^ eplb_trail_key(gpu, e) ^ eplb_trail_key(gpu, f)};
    eplb_trail_offer(trail, &move, trail->copies + price);
}

/* What no move may reach to be kept. */
static float loosest_limit(const eplb_trail *trail)
{
    float limit = trail->limit[0];
    for (int i = 1; i < EPLB_TRAIL_LEVELS; i++) {
        limit = trail->limit[i] > limit ? trail->limit[i] : limit;
    }
    return limit;
}

/* Whether a slot may get a further replica of expert f, and the move to it is kept if the excess
 * after it is at least that low. */
static inline bool is_worth(const eplb_trail *trail, int32_t slot, int32_t f, float least)
{
    const eplb_layer *layer = trail->layer;
    int32_t gpu = trail->shape->slot_gpu[slot];
    int32_t e = layer->slot_expert[slot];
    return least < eplb_trail_limit(trail, trail->copies + price_of(trail, gpu, f, e)) &&
           eplb_layer_may_replace(layer, gpu, e, f);
}

/* A further replica of an expert of the busiest GPU, in the place of a donor elsewhere. */
static void offer_relief(eplb_trail *trail, int32_t f)
{
    const eplb_layer *layer = trail->layer;
    change_share(trail, f, 1, trail->gain);
    float relief = excess_of_holders(trail, f, -1, trail->gain);
    if (!(relief < 0.0f)) {
        return;
    }
    float limit = loosest_limit(trail);
    trail->moves += trail->donors;
    for (int32_t i = 0; i < trail->donors; i++) {
        int32_t slot = trail->donor[i];
        int32_t e = layer->slot_expert[slot];
        int32_t gpu = trail->shape->slot_gpu[slot];
        float least = trail->total + relief + trail->donor_excess[i] - trail->excess[gpu];
        if (!(least < limit) || !is_worth(trail, slot, f, least)) {
            continue;
        }
        float excess = least + excess_of_replacement(trail, gpu, e, f);
        change_share(trail, e, -1, trail->loss);
        offer_replacement(trail, slot, f, excess + excess_of_overlap(trail, e, f, gpu));
    }
}

/* In a slot of the busiest GPU, a further replica of another expert instead of a donor. */
static void offer_exchange(eplb_trail *trail, int32_t donor)
{
    const eplb_layer *layer = trail->layer;
    int32_t slot = trail->donor[donor];
    int32_t e = layer->slot_expert[slot];
    int32_t gpu = trail->shape->slot_gpu[slot];
    change_share(trail, e, -1, trail->loss);
    float before = trail->total + trail->donor_excess[donor];
    float base = before - trail->pull[e] - trail->pull_charge;
    float limit = loosest_limit(trail);
    trail->moves += trail->shape->experts;
    for (int32_t f = 0; f < trail->shape->experts; f++) {
        float least = base + trail->push[f];
        if (!(least < limit) || !is_worth(trail, slot, f, least)) {
            continue;
        }
        change_share(trail, f, 1, trail->gain);
        float excess = before - trail->excess[gpu] + excess_of_replacement(trail, gpu, e, f);
        excess += excess_of_holders(trail, f, -1, trail->gain);
        if (excess < limit) {
            offer_replacement(trail, slot, f, excess + excess_of_overlap(trail, e, f, gpu));
        }
    }
}

/* Shares and heights slot by slot: swaps are looked at four at a time. */
static void spread_over_slots(eplb_trail *trail)
{
    const eplb_shape *shape = trail->shape;
    size_t lanes = EPLB_LANES * (size_t)trail->groups;
    size_t width = EPLB_LANES * (size_t)trail->slot_groups;
    float *excess = (float *)trail->slot_excess;
    for (int32_t s = 0; s < shape->slots; s++) {
        excess[s] = trail->excess[shape->slot_gpu[s]];
    }
    for (int32_t k = 0; k < trail->scenarios; k++) {
        float *share = (float *)trail->slot_share + (size_t)k * width;
        float *height = (float *)trail->slot_height + (size_t)k * width;
        const float *shares = (const float *)trail->share + k;
        const float *heights = (const float *)trail->height + k;
        for (int32_t s = 0; s < shape->slots; s++) {
            share[s] = shares[(size_t)trail->layer->slot_expert[s] * lanes];
            height[s] = heights[(size_t)shape->slot_gpu[s] * lanes];
        }
    }
}

/* The excess after swaps of slot s with four others. */
static inline eplb_lanes excess_of_swaps(const eplb_trail *trail, int32_t s, int32_t four)
{
    size_t groups = (size_t)trail->slot_groups;
    size_t width = EPLB_LANES * groups;
    eplb_lanes sum = eplb_lanes_of(trail->total - trail->excess[trail->shape->slot_gpu[s]]) -
                     trail->slot_excess[four];
    for (size_t k = 0; k < (size_t)trail->scenarios; k++) {
        const eplb_lanes *share = trail->slot_share + k * groups;
        const eplb_lanes *height = trail->slot_height + k * groups;
        eplb_lanes weight = eplb_lanes_of(((const float *)trail->weight)[k]);
        eplb_lanes given = eplb_lanes_of(((const float *)trail->slot_share)[k * width + (size_t)s]);
        eplb_lanes here = eplb_lanes_of(((const float *)trail->slot_height)[k * width + (size_t)s]);
        eplb_lanes moved = given - share[four];
        sum +=
            excess_of(trail, here - moved, weight) + excess_of(trail, height[four] + moved, weight);
    }
    return sum;
}

/* Two replicas change places. */
static void offer_swap(eplb_trail *trail, int32_t s, int32_t t, float excess)
{
    const eplb_layer *layer = trail->layer;
    int32_t g = trail->shape->slot_gpu[s];
    int32_t h = trail->shape->slot_gpu[t];
    int32_t e = layer->slot_expert[s];
    int32_t f = layer->slot_expert[t];
    int32_t price = price_of(trail, g, f, e);
    int32_t other_price = price_of(trail, h, e, f);
    int32_t copies = trail->copies + price + other_price;
    if (!(excess < eplb_trail_limit(trail, copies)) || !may_take(trail, g, price) ||
        !may_take(trail, h, other_price) || !eplb_layer_may_swap(layer, g, e, h, f)) {
        return;
    }
    const eplb_trail_move move = {.excess = excess,
                                  .parent = trail->state,
                                  .slot = s,
                                  .other = t,
                                  .key = trail->key ^ eplb_trail_key(g, e) ^ eplb_trail_key(g, f) ^
                                         eplb_trail_key(h, f) ^ eplb_trail_key(h, e)};
    eplb_trail_offer(trail, &move, copies);
}

static void offer_swaps(eplb_trail *trail, int32_t s)
{
    trail->moves += trail->shape->slots;
    for (int32_t four = 0; four < trail->slot_groups; four++) {
        float limit = loosest_limit(trail);
        limit = limit < trail->total ? limit : trail->total;
        eplb_lanes excess = excess_of_swaps(trail, s, four);
        eplb_lane_bits good = (eplb_lane_bits)(excess < eplb_lanes_of(limit));
        if (((good[0] | good[1]) | (good[2] | good[3])) == 0) {
            continue;
        }
        for (int32_t i = 0; i < EPLB_LANES; i++) {
            int32_t t = EPLB_LANES * four + i;
            if (good[i] != 0 && t < trail->shape->slots) {
                offer_swap(trail, s, t, excess[i]);
            }
        }
    }
}

/* What each expert's share is of the busiest GPU's excess, at the slope that this has now and that
 * it falls by at most, and what getting the expert adds at least to all excess. */
static void find_pull(eplb_trail *trail, int32_t gpu)
{
    const eplb_lanes *height = height_of(trail, gpu);
    eplb_lanes threshold = eplb_lanes_of(trail->threshold);
    eplb_lanes steep = eplb_lanes_of(2.0f * trail->steepness);
    eplb_lanes charge = eplb_lanes_of(0.0f);
    for (int32_t i = 0; i < trail->groups; i++) {
        eplb_lanes over = height[i] - threshold;
        eplb_lane_bits counts = (eplb_lane_bits)(over > eplb_lanes_of(0.0f));
        eplb_lanes slope = trail->weight[i] * (eplb_lanes_of(1.0f) + steep * over);
        trail->both[i] = (eplb_lanes)((eplb_lane_bits)slope & counts);
        charge += trail->weight[i] * charge_of(trail, eplb_lanes_positive(over));
    }
    trail->pull_charge = eplb_lanes_sum(charge);
    for (int32_t e = 0; e < trail->shape->experts; e++) {
        const eplb_lanes *share = share_of(trail, e);
        eplb_lanes sum = eplb_lanes_of(0.0f);
        for (int32_t i = 0; i < trail->groups; i++) {
            sum += trail->both[i] * share[i];
        }
        float count = (float)trail->layer->count[e];
        trail->pull[e] = eplb_lanes_sum(sum);
        trail->push[e] = trail->pull[e] * count / (count + 1.0f) - trail->relief[e];
    }
}

/* The GPU with the largest excess below a limit, the smaller of equals; -1: none. */
static int32_t next_busiest(const eplb_trail *trail, float limit, int32_t after)
{
    int32_t busiest = -1;
    for (int32_t g = 0; g < trail->shape->gpus; g++) {
        float excess = trail->excess[g];
        bool is_next = excess < limit || (!(excess > limit) && g > after);
        if (excess > 0.0f && is_next && (busiest < 0 || excess > trail->excess[busiest])) {
            busiest = g;
        }
    }
    return busiest;
}

static void relieve(eplb_trail *trail, int32_t gpu)
{
    const eplb_shape *shape = trail->shape;
    int32_t donor = 0;
    find_pull(trail, gpu);
    for (int32_t s = shape->first_slot[gpu]; s < shape->first_slot[gpu + 1]; s++) {
        offer_relief(trail, trail->layer->slot_expert[s]);
        while (donor < trail->donors && trail->donor[donor] < s) {
            donor++;
        }
        if (donor < trail->donors && trail->donor[donor] == s) {
            offer_exchange(trail, donor);
        }
        offer_swaps(trail, s);
    }
}

void eplb_trail_expand(eplb_trail *trail)
{
    sum_heights(trail);
    spread_over_slots(trail);
    find_donors(trail);
    int64_t before = trail->kept;
    int32_t gpu = next_busiest(trail, 3.0e38f, -1);
    while (gpu >= 0) {
        relieve(trail, gpu);
        if (trail->kept > before || trail->queue[1].count + trail->queue[2].count > 0) {
            return; /* each busy GPU's turn comes */
        }
        gpu = next_busiest(trail, trail->excess[gpu], gpu);
    }
}
