/* SPDX-License-Identifier: MIT */
/* What an exact search will cost. */
#include "ilp/exact.h"
#include "ilp/exact_search.h"

#define MOST_EXPERTS 16
#define MOST_SLOTS 48

/* Measured on lognormal loads, up to a factor of three for 8 to 16 experts on 4 to 16 GPUs x 2 to 6
 * slots: a choice of counts costs a node for so many sets of experts that a GPU may hold. */
#define SETS_PER_NODE 80.0
/* With two slots a GPU bounds leave one choice of counts of so many, of several scenarios two. */
#define PAIRS_LEFT 1000.0

/* In how many ways the experts can share the slots. */
static double count_ways(const eplb_refine_task *task)
{
    double ways[MOST_SLOTS + 1] = {1.0}; /* for each number of slots, of the experts so far */
    for (int32_t e = 0; e < task->experts; e++) {
        for (int32_t slots = task->slots; slots >= 0; slots--) {
            double sum = 0.0;
            for (int32_t c = task->min_replicas; c <= task->max_replicas && c <= slots; c++) {
                sum += ways[slots - c];
            }
            ways[slots] = sum;
        }
    }
    return ways[task->slots];
}

/* How many sets of experts a GPU with the usual number of slots may hold beside a given one. */
static double count_sets(const eplb_refine_task *task)
{
    int32_t slots = (task->slots + task->gpus - 1) / task->gpus;
    double sets = 1.0;
    for (int32_t i = 1; i < slots; i++) {
        sets *= (double)(task->experts - i) / (double)i;
    }
    return sets;
}

/* With two slots a GPU bounds are what takes the time. */
static double pair_cost(const eplb_refine_task *task)
{
    double left = task->scenarios > 1 ? 2.0 : 1.0;
    int32_t bound = 1 + task->experts * task->scenarios / EPLB_EXACT_LOOKS;
    return left * (double)bound / PAIRS_LEFT;
}

bool eplb_ilp_exact_fits(const eplb_refine_task *task)
{
    if (task->experts > MOST_EXPERTS || task->slots > MOST_SLOTS) {
        return false;
    }
    bool pairs = task->slots <= 2 * task->gpus;
    double cost = pairs ? pair_cost(task) : count_sets(task) / SETS_PER_NODE;
    return count_ways(task) * cost <= EPLB_ILP_EXACT_NODES;
}
