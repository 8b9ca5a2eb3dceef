/* SPDX-License-Identifier: MIT */
/* The placement in force, made valid: what failures, pins or other slots leave to be copied. */
#include <string.h>

#include "planner/rebalance.h"

#include "model/placement.h"

static bool contains(const int32_t *experts, int32_t count, int32_t expert)
{
    for (int32_t i = 0; i < count; i++) {
        if (experts[i] == expert) {
            return true;
        }
    }
    return false;
}

/* Experts of slots that are no more go to the GPU's holes. */
static void move_in(int32_t *home, int32_t has, const int32_t *old, int32_t had)
{
    int32_t hole = 0;
    for (int32_t i = has; i < had; i++) {
        while (hole < has && home[hole] >= 0) {
            hole++;
        }
        if (hole < has && old[i] >= 0 && !contains(home, has, old[i])) {
            home[hole] = old[i];
        }
    }
}

/* Takes over what the live GPUs hold, once each. */
static void take_home(eplb_rebalance_worker *w, int32_t layer)
{
    const eplb_rebalance_job *job = w->job;
    const eplb_shape *shape = &job->shape;
    const eplb_cluster *before = job->current->cluster;
    const int32_t *row = eplb_placement_row(job->current, layer);
    eplb_trail_clear_home(&w->trail);
    for (int32_t g = 0; g < shape->gpus; g++) {
        int32_t cluster_gpu = shape->cluster_gpu[g];
        int32_t had = before->gpu[cluster_gpu].slots;
        int32_t has = shape->first_slot[g + 1] - shape->first_slot[g];
        const int32_t *old = row + before->first_slot[cluster_gpu];
        int32_t *home = w->home + shape->first_slot[g];
        for (int32_t i = 0; i < has; i++) {
            bool is_new = i < had && old[i] >= 0 && !eplb_trail_is_home(&w->trail, g, old[i]);
            home[i] = is_new ? old[i] : -1;
            if (is_new) {
                eplb_trail_set_home(&w->trail, g, old[i]);
            }
        }
        for (int32_t i = has; i < had; i++) {
            if (old[i] >= 0) {
                eplb_trail_set_home(&w->trail, g, old[i]);
            }
        }
        move_in(home, has, old, had);
    }
}

static bool holds(const eplb_rebalance_worker *w, int32_t gpu, int32_t expert)
{
    const eplb_shape *shape = &w->job->shape;
    for (int32_t s = shape->first_slot[gpu]; s < shape->first_slot[gpu + 1]; s++) {
        if (w->start[s] == expert) {
            return true;
        }
    }
    return false;
}

/* Loads of the GPUs with the replicas that there are. */
static void measure(eplb_rebalance_worker *w)
{
    const eplb_shape *shape = &w->job->shape;
    for (int32_t g = 0; g < shape->gpus; g++) {
        w->heat[g] = 0.0;
        for (int32_t s = shape->first_slot[g]; s < shape->first_slot[g + 1]; s++) {
            int32_t e = w->start[s];
            w->heat[g] += e >= 0 ? w->loads[e] / w->counts[e] : 0.0;
        }
    }
}

static void put(eplb_rebalance_worker *w, int32_t slot, int32_t expert)
{
    if (w->start[slot] >= 0) {
        w->counts[w->start[slot]]--;
    }
    w->start[slot] = expert;
    w->counts[expert]++;
}

static bool is_pinned(const eplb_rebalance_worker *w, int32_t gpu, int32_t expert)
{
    return w->job->shape.rules != NULL && eplb_layer_pins(&w->layer, gpu, expert);
}

static int32_t fewest(const eplb_rebalance_worker *w)
{
    return w->job->shape.rules != NULL ? w->job->shape.rules->min_replicas : 1;
}

static int32_t most(const eplb_rebalance_worker *w)
{
    return w->job->shape.rules != NULL ? w->job->shape.rules->max_replicas : w->job->shape.gpus;
}

/* Where a replica may go. */
enum {
    ANYWHERE = 0,
    IN_HOLE = 1, /* only where nothing has to give way */
    AT_HOME = 2, /* only where it is no copy: the GPU has the expert, in a slot that it loses */
};

/* The slot where a replica of an expert does best: a hole on the coolest GPU, else the place of an
 * expert with more replicas than it needs where that leaves the GPU coolest. -1: none. */
static int32_t find_place(const eplb_rebalance_worker *w, int32_t expert, int where)
{
    const eplb_shape *shape = &w->job->shape;
    int32_t best = -1;
    bool best_is_hole = false;
    double least = 0.0;
    for (int32_t s = 0; s < shape->slots; s++) {
        int32_t g = shape->slot_gpu[s];
        int32_t e = w->start[s];
        bool hole = e < 0;
        bool may =
            hole || ((where & IN_HOLE) == 0 && w->counts[e] > fewest(w) && !is_pinned(w, g, e));
        may = may && ((where & AT_HOME) == 0 || eplb_trail_is_home(&w->trail, g, expert));
        if (!may || e == expert || (best_is_hole && !hole)) {
            continue;
        }
        double heat = w->heat[g] - (hole ? 0.0 : w->loads[e] / w->counts[e]);
        bool is_better = best < 0 || (hole && !best_is_hole) || heat < least;
        if (is_better && !holds(w, g, expert)) {
            best = s;
            best_is_hole = hole;
            least = heat;
        }
    }
    return best;
}

/* Replicas beyond the limit leave holes. */
static void drop_surplus(eplb_rebalance_worker *w)
{
    const eplb_shape *shape = &w->job->shape;
    for (int32_t s = shape->slots - 1; s >= 0 && shape->rules != NULL; s--) {
        int32_t e = w->start[s];
        if (e >= 0 && w->counts[e] > most(w) && !is_pinned(w, shape->slot_gpu[s], e)) {
            w->start[s] = -1;
            w->counts[e]--;
        }
    }
}

/* Where pins ask for an expert: in a hole, or for an expert that is not pinned and has most
 * replicas. */
static bool place_pins(eplb_rebalance_worker *w)
{
    const eplb_shape *shape = &w->job->shape;
    for (int32_t g = 0; g < shape->gpus && shape->rules != NULL; g++) {
        for (int32_t e = 0; e < shape->experts; e++) {
            if (!is_pinned(w, g, e) || holds(w, g, e)) {
                continue;
            }
            int32_t best = -1;
            for (int32_t s = shape->first_slot[g]; s < shape->first_slot[g + 1]; s++) {
                int32_t f = w->start[s];
                if (f < 0) {
                    best = s;
                    break;
                }
                if (!is_pinned(w, g, f) && (best < 0 || w->counts[f] > w->counts[w->start[best]])) {
                    best = s;
                }
            }
            if (best < 0) {
                return false;
            }
            put(w, best, e);
        }
    }
    return true;
}

/* The hottest expert with fewer replicas than it needs; one at home must have a place. -1: none. */
static int32_t find_missing(const eplb_rebalance_worker *w, int where, int32_t *place)
{
    int32_t missing = -1;
    for (int32_t e = 0; e < w->job->shape.experts; e++) {
        if (w->counts[e] < fewest(w) && (missing < 0 || w->loads[e] > w->loads[missing])) {
            int32_t slot = find_place(w, e, where);
            if (slot >= 0 || (where & AT_HOME) == 0) {
                missing = e;
                *place = slot;
            }
        }
    }
    return missing;
}

/* Experts with fewer replicas than they need: first those whose return is no copy, before others
 * take their places. */
static bool place_missing(eplb_rebalance_worker *w)
{
    int where = AT_HOME;
    for (;;) {
        int32_t place = -1;
        measure(w);
        int32_t missing = find_missing(w, where, &place);
        if (missing < 0 && where == ANYWHERE) {
            return true;
        }
        if (missing < 0) {
            where = ANYWHERE;
        } else if (place < 0) {
            return false;
        } else {
            put(w, place, missing);
        }
    }
}

/* The expert whose replicas are the hottest that may be split, and that has a place. -1: none. */
static int32_t find_hottest(const eplb_rebalance_worker *w, int where, int32_t *place)
{
    int32_t best = -1;
    for (int32_t e = 0; e < w->job->shape.experts; e++) {
        bool is_hotter = best < 0 || w->loads[e] / w->counts[e] > w->loads[best] / w->counts[best];
        int32_t slot = is_hotter && w->counts[e] < most(w) ? find_place(w, e, where) : -1;
        if (slot >= 0) {
            best = e;
            *place = slot;
        }
    }
    return best;
}

/* Every slot is filled: with what is no copy where that can be. */
static bool fill_holes(eplb_rebalance_worker *w)
{
    const eplb_shape *shape = &w->job->shape;
    int32_t holes = 0;
    for (int32_t s = 0; s < shape->slots; s++) {
        holes += w->start[s] < 0;
    }
    int where = IN_HOLE | AT_HOME;
    while (holes > 0) {
        int32_t place = -1;
        measure(w);
        int32_t expert = find_hottest(w, where, &place);
        if (expert < 0 && where == IN_HOLE) {
            return false;
        }
        if (expert < 0) {
            where = IN_HOLE;
        } else {
            put(w, place, expert);
            holes--;
        }
    }
    return true;
}

static void count(eplb_rebalance_worker *w)
{
    memset(w->counts, 0, (size_t)w->job->shape.experts * sizeof(*w->counts));
    for (int32_t s = 0; s < w->job->shape.slots; s++) {
        if (w->start[s] >= 0) {
            w->counts[w->start[s]]++;
        }
    }
}

bool eplb_rebalance_mend(eplb_rebalance_worker *w, int32_t layer)
{
    const eplb_shape *shape = &w->job->shape;
    take_home(w, layer);
    memcpy(w->start, w->home, (size_t)shape->slots * sizeof(*w->start));
    if (shape->rules != NULL) {
        eplb_rules_pin(&w->job->rules, &w->layer, layer);
    }
    count(w);
    drop_surplus(w);
    if (!place_pins(w) || !place_missing(w) || !fill_holes(w)) {
        return false;
    }
    memcpy(w->layer.slot_expert, w->start, (size_t)shape->slots * sizeof(*w->start));
    eplb_layer_index(&w->layer);
    return shape->rules == NULL || eplb_rules_hold(&w->layer);
}

void eplb_rebalance_settle(const eplb_rebalance_worker *w, int32_t *row)
{
    const eplb_shape *shape = &w->job->shape;
    for (int32_t g = 0; g < shape->gpus; g++) {
        for (int32_t s = shape->first_slot[g]; s < shape->first_slot[g + 1]; s++) {
            /* Each exchange brings one expert home for good. */
            for (int32_t t = shape->first_slot[g]; t < shape->first_slot[g + 1]; t++) {
                if (t != s && row[t] == w->home[s] && row[s] != w->home[s]) {
                    int32_t expert = row[s];
                    row[s] = row[t];
                    row[t] = expert;
                    break;
                }
            }
        }
    }
}
