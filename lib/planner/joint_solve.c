/* SPDX-License-Identifier: MIT */
#include "planner/joint.h"

/* Layers of so few slots are searched on the objective itself. */
#define SMALL_LAYER 64

/* Moves of the soft phase by effort level, for each slot and each sixteenth of a GPU: with fewer
 * slots a GPU the steps are coarser, and more are needed. */
static const int32_t moves_of_level[] = {
    [1] = 0, [2] = 10, [3] = 20, [4] = 40, [5] = 60, [6] = 240, [7] = 720, [8] = 2200, [9] = 6600};
#define GPU_WEIGHT 16
/* One move of the polish for so many of the soft phase; level 1 has only a polish. */
#define POLISH_EVERY 10
#define POLISH_LEAST 10

/* A move costs as much as there are scenarios: beyond so many there are fewer moves. */
#define MANY_SCENARIOS 64

/* Smaller layers get the moves of one of this size: they are cheap, and have as many ways to go
 * wrong. */
#define LEAST_SIZE 800

static int64_t size_of(const eplb_shape *shape)
{
    int64_t size = shape->slots + GPU_WEIGHT * (int64_t)shape->gpus;
    return size > LEAST_SIZE ? size : LEAST_SIZE;
}

static int64_t less_for_many(const eplb_joint *joint, int64_t moves)
{
    return joint->scenarios <= MANY_SCENARIOS ? moves : moves * MANY_SCENARIOS / joint->scenarios;
}

/* Spare replicas go where a scenario exceeds the usual load: the more an expert's load varies, the
 * more its replicas even out, also in traffic that no scenario shows. With few slots a GPU, what
 * the largest replica leaves for the others counts more, and the second way may be the better one.
 */
static const double usual_parts[] = {1.0 / 3.0, 0.0};
#define FEW_SLOTS 4
/* A trial of a way has this part of the moves. */
#define TRIAL_PART 8

/* Starts in the way that a short search gets further from. */
static void choose_start(eplb_joint *joint, int64_t moves)
{
    double value[2];
    for (int i = 0; i < 2; i++) {
        (void)eplb_joint_start(joint, usual_parts[i]);
        eplb_joint_find_near(joint);
        eplb_joint_soften(joint, moves);
        value[i] = eplb_joint_measure(joint);
    }
    (void)eplb_joint_start(joint, usual_parts[value[1] < value[0]]);
}

/* Small layers: rounds of level 5 take some 10 ms. */
static eplb_budget small_budget(int32_t effort)
{
    return (eplb_budget){.rounds = effort < 2 ? 0 : 32,
                         .moves_per_round = (int64_t)5000 << effort >> 5,
                         .hottest = 16.0};
}

bool eplb_joint_fits(eplb_joint *joint)
{
    return eplb_joint_start(joint, usual_parts[0]) && eplb_joint_start(joint, usual_parts[1]);
}

/* The last step: descent on the objective itself. */
static void polish(eplb_joint *joint, int32_t effort, int64_t size)
{
    int32_t moves = moves_of_level[effort] / POLISH_EVERY;
    eplb_joint_polish(joint, size * (moves > POLISH_LEAST ? moves : POLISH_LEAST));
}

void eplb_joint_rebalance(eplb_joint *joint, int32_t effort)
{
    int64_t size = less_for_many(joint, size_of(joint->shape));
    eplb_joint_index(joint);
    eplb_joint_find_near(joint);
    eplb_joint_soften(joint, size * moves_of_level[effort]);
    polish(joint, effort, size);
}

eplb_stop eplb_joint_solve(eplb_joint *joint, int32_t effort, double *bound)
{
    eplb_layer *layer = joint->layer;
    int64_t size = less_for_many(joint, size_of(joint->shape));
    layer->moves = 0;
    *bound = eplb_joint_bound(joint, NULL);
    double optimal = *bound * (1.0 + EPLB_ROUNDING);
    (void)eplb_joint_start(joint, usual_parts[0]);
    if (joint->shape->slots <= SMALL_LAYER) {
        eplb_budget budget = small_budget(effort);
        budget.moves_per_round = less_for_many(joint, budget.moves_per_round);
        eplb_joint_anneal(joint, optimal, &budget);
        eplb_joint_find_near(joint);
    } else {
        if (joint->shape->slots <= FEW_SLOTS * joint->shape->gpus) {
            choose_start(joint, size * moves_of_level[effort] / TRIAL_PART);
        }
        eplb_joint_find_near(joint);
        eplb_joint_soften(joint, size * moves_of_level[effort]);
    }
    polish(joint, effort, size);
    double value = eplb_joint_measure(joint);
    if (value > optimal && effort > 1 && eplb_shape_has_pairs(joint->shape)) {
        eplb_effort proof = eplb_effort_of(effort > 3 ? effort - 2 : 2, joint->shape->slots);
        *bound = eplb_joint_bound(joint, &proof); /* for each scenario: less for each */
        optimal = *bound * (1.0 + EPLB_ROUNDING);
    }
    if (value <= optimal) {
        return EPLB_STOP_OPTIMAL;
    }
    return effort > 1 ? EPLB_STOP_EFFORT : EPLB_STOP_LOCAL_OPTIMUM;
}
