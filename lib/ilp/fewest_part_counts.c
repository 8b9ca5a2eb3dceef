/* SPDX-License-Identifier: MIT */
/* Whose number of replicas may change in a part. */
#include "ilp/fewest_part.h"

/* So many of the experts with the largest shares may get one more. */
#define HOT 4

static void count_inside(eplb_fewest_part *part)
{
    const eplb_fewest_state *state = part->state;
    for (int32_t e = 0; e < state->layer->experts; e++) {
        part->low[e] = state->count[e];
        part->high[e] = state->count[e];
        part->inside[e] = 0;
        for (int32_t i = 0; i < part->gpus; i++) {
            part->inside[e] += eplb_fewest_holds(state, part->gpu[i], e) ? 1 : 0;
        }
        part->binaries += part->inside[e] > 0 ? part->gpus : 0;
    }
}

static int32_t homes_inside(const eplb_fewest_part *part, int32_t expert)
{
    int32_t homes = 0;
    for (int32_t i = 0; i < part->gpus; i++) {
        homes += eplb_fewest_is_home(part->state->layer, part->gpu[i], expert) ? 1 : 0;
    }
    return homes;
}

/* Lets the number of replicas be one more or one less as well, where there are binaries for it. */
static void widen(eplb_fewest_part *part, int32_t expert, int32_t change)
{
    bool is_fixed = part->low[expert] == part->high[expert];
    int32_t picks = part->inside[expert] > 0 ? part->gpus : homes_inside(part, expert);
    int32_t more = picks + (is_fixed ? 2 : 1);
    int32_t *end = change > 0 ? &part->high[expert] : &part->low[expert];
    if (*end != part->state->count[expert] || part->binaries + more > EPLB_FEWEST_BINARIES) {
        return;
    }
    *end += change;
    part->binaries += more;
}

static bool is_copied_inside(const eplb_fewest_part *part, int32_t expert)
{
    const eplb_fewest_state *state = part->state;
    for (int32_t i = 0; i < part->gpus; i++) {
        if (eplb_fewest_holds(state, part->gpu[i], expert) &&
            !eplb_fewest_is_home(state->layer, part->gpu[i], expert)) {
            return true;
        }
    }
    return false;
}

/* Spare replicas of experts that have been copied, or of any. */
static void let_drop(eplb_fewest_part *part, bool copied)
{
    for (int32_t e = 0; e < part->state->layer->experts; e++) {
        if (part->inside[e] > 0 && part->state->count[e] > 1 &&
            (!copied || is_copied_inside(part, e))) {
            widen(part, e, -1);
        }
    }
}

/* Experts that were at home in the part and have no replica there. */
static void let_return(eplb_fewest_part *part)
{
    for (int32_t e = 0; e < part->state->layer->experts; e++) {
        if (part->inside[e] == 0 && homes_inside(part, e) > 0) {
            widen(part, e, 1);
        }
    }
}

static double share_of(const eplb_fewest_state *state, int32_t expert)
{
    return eplb_fewest_peak(state->layer, expert) / (double)state->count[expert];
}

/* The experts with the largest shares, of those that are not everywhere in the part. */
static void let_hot_grow(eplb_fewest_part *part)
{
    const eplb_fewest_state *state = part->state;
    for (int32_t n = 0; n < HOT; n++) {
        int32_t hottest = -1;
        for (int32_t e = 0; e < state->layer->experts; e++) {
            if (part->inside[e] > 0 && part->inside[e] < part->gpus &&
                part->high[e] == state->count[e] &&
                (hottest < 0 || share_of(state, e) > share_of(state, hottest))) {
                hottest = e;
            }
        }
        if (hottest >= 0) {
            widen(part, hottest, 1);
        }
    }
}

void eplb_fewest_part_choose_counts(eplb_fewest_part *part)
{
    part->binaries = 0;
    count_inside(part);
    let_drop(part, true);
    let_return(part);
    let_hot_grow(part);
    let_drop(part, false);
}
