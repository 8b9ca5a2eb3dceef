/* SPDX-License-Identifier: MIT */
/* Fewest copies in one call. */
#ifndef EPLB_TESTS_FEWEST_H
#define EPLB_TESTS_FEWEST_H

#include "planning.h"

#include <eplb/ilp.h>

/* An eplb_ilp with a budget of nodes. */
static inline eplb_ilp *ilp_of(int64_t nodes)
{
    eplb_ilp_options options;
    eplb_ilp_options_init(&options);
    options.nodes = nodes;
    eplb_ilp *ilp;
    eplb_error error;
    assert_ok(eplb_ilp_create(&ilp, NULL, &options, &error), &error);
    return ilp;
}

static inline eplb_fewest_task task_of(const eplb_placement *current, const eplb_load *load,
                                       const eplb_cluster *cluster, double target)
{
    eplb_fewest_task task;
    eplb_fewest_task_init(&task);
    task.current = current;
    task.load = load;
    task.cluster = cluster;
    task.target = target;
    return task;
}

/* Solves with a budget and checks what is true of every answer: the placement is valid, its copies
 * and its objective are as reported, and no claim contradicts another. */
static inline eplb_fewest_result solve_fewest(const eplb_fewest_task *task, int64_t nodes,
                                              eplb_placement **placement)
{
    eplb_error error;
    eplb_ilp *ilp = ilp_of(nodes);
    eplb_fewest_result result = {.struct_size = sizeof(result)};
    assert_ok(eplb_ilp_fewest_copies(ilp, placement, task, &result, &error), &error);
    eplb_ilp_destroy(&ilp);
    assert_ok(eplb_placement_validate(*placement, 0, &error), &error);
    double value;
    assert_ok(eplb_placement_objective(*placement, 0, task->load, task->layer,
                                       (eplb_objective)task->objective, &value, &error),
              &error);
    assert_true(value == result.imbalance);
    bool reached = value <= task->target * (1.0 + 1e-12);
    assert_int_equal(reached,
                     result.verdict == EPLB_FEWEST_PROVEN || result.verdict == EPLB_FEWEST_REACHED);
    assert_true(result.copies_at_least <= result.copies);
    assert_true(result.imbalance_at_least <= result.imbalance);
    assert_true(result.verdict != EPLB_FEWEST_PROVEN || result.copies_at_least == result.copies);
    if (task->current_row == 0) {
        int64_t copies;
        assert_ok(eplb_placement_copies(task->current, *placement, 0, &copies, &error), &error);
        assert_int_equal(copies, result.copies);
    }
    return result;
}

#endif
