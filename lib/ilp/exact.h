/* SPDX-License-Identifier: MIT */
/*
 * The best placement of a small layer, with a proof: branch and bound over replica counts and, for
 * each choice of counts, over what the GPUs hold. All arithmetic is in doubles: placements whose
 * objectives differ by more than 1e-12, relatively, are told apart.
 */
#ifndef EPLB_ILP_EXACT_H
#define EPLB_ILP_EXACT_H

#include <stdbool.h>

#include <eplb/hooks.h>
#include <eplb/refine.h>

typedef struct eplb_ilp_exact_result {
    int32_t *placement; /* [slots] the caller's array: the best known, the task's if none better */
    double value;       /* its objective, but for rounding */
    double lower_bound; /* no placement has a smaller objective; at most the value, at least the
                         * task's bound unless that is above the value */
    bool proven;        /* the placement is optimal: the bound is the value */
    int64_t nodes;      /* that were looked at, of some 100 ns to 2 us; bounds of counts for many
                         * experts and scenarios count as several */
} eplb_ilp_exact_result;

/* Whether a proof within EPLB_ILP_EXACT_NODES nodes is likely, judged by sizes and limits alone. */
#define EPLB_ILP_EXACT_NODES 5000000
bool eplb_ilp_exact_fits(const eplb_refine_task *task);

/*
 * Looks at up to `nodes` nodes (-1: no limit); asks task->stop, from the calling thread, at the
 * first of every few thousand. What is found depends on the task and `nodes` only. Layers of more
 * than 64 experts, 512 slots or 64 scenarios are given back as they are. Memory: 16 bytes for each
 * expert, slot of a GPU and scenario, and little more, in advance. Fails only without memory.
 */
eplb_status eplb_ilp_exact(const eplb_hooks *hooks, const eplb_refine_task *task, int64_t nodes,
                           eplb_ilp_exact_result *result, eplb_error *error);

#endif
