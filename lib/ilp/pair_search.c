/* SPDX-License-Identifier: MIT */
#include "ilp/pair_search.h"

#include <math.h>

#include "base/memory.h"

/* A part this close to 0 or 1 is one. */
#define WHOLE 1e-6

typedef enum verdict { OPEN, CLOSED, REACHED } verdict;

eplb_status eplb_pair_search_init(eplb_pair_search *search, eplb_pair_program *program,
                                  eplb_error *error)
{
    *search = (eplb_pair_search){.program = program};
    size_t experts = (size_t)program->options.task->experts;
    size_t options = experts * (size_t)program->options.most;
    const eplb_array arrays[] = {
        EPLB_ARRAY(search->trail, options),
        EPLB_ARRAY(search->count, experts),
    };
    return eplb_alloc_arrays(&program->ilp->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]),
                             error);
}

void eplb_pair_search_free(eplb_pair_search *search, const eplb_hooks *hooks)
{
    void *arrays[] = {search->trail, search->count};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(hooks, arrays[i]);
    }
}

static void exclude(eplb_pair_search *search, int32_t option)
{
    if (search->program->excluded[option] == 0) {
        search->program->excluded[option] = 1;
        search->trail[search->trail_length++] = option;
    }
}

static void undo(eplb_pair_search *search, int32_t length)
{
    while (search->trail_length > length) {
        search->program->excluded[search->trail[--search->trail_length]] = 0;
    }
}

/* Excludes options that cost more above the cheapest than all experts together can spend. */
static void exclude_dear(eplb_pair_search *search)
{
    eplb_pair_program *program = search->program;
    const eplb_pair_options *options = &program->options;
    double spare =
        eplb_pair_program_spare(program) + (double)options->task->slots * EPLB_PAIR_MARGIN;
    for (int32_t e = 0; e < options->task->experts; e++) {
        double least = eplb_pair_program_least(program, e);
        for (int32_t i = options->first[e]; i < options->first[e + 1]; i++) {
            if (eplb_pair_option_cost(&options->option[i], program->price) - least > spare) {
                exclude(search, i);
            }
        }
    }
}

/* Counts by the largest parts; returns the expert whose largest part is smallest, -1: all are
 * whole. */
static int32_t round_parts(eplb_pair_search *search)
{
    const eplb_pair_program *program = search->program;
    const eplb_pair_options *options = &program->options;
    int32_t chosen = -1;
    double smallest = 1.0 - WHOLE;
    for (int32_t e = 0; e < options->task->experts; e++) {
        int32_t largest = options->first[e];
        for (int32_t i = options->first[e] + 1; i < options->first[e + 1]; i++) {
            largest = program->part[i] > program->part[largest] ? i : largest;
        }
        search->count[e] = options->option[largest].count;
        if (program->part[largest] < smallest) {
            smallest = program->part[largest];
            chosen = e;
        }
    }
    return chosen;
}

/* The branch that has more of the expert's parts comes first. */
static void decide(eplb_pair_search *search, int32_t expert)
{
    const eplb_pair_program *program = search->program;
    const eplb_pair_options *options = &program->options;
    double mean = 0.0;
    for (int32_t i = options->first[expert]; i < options->first[expert + 1]; i++) {
        mean += program->part[i] * (double)options->option[i].count;
    }
    int32_t split = (int32_t)mean;
    double upper = 0.0;
    for (int32_t i = options->first[expert]; i < options->first[expert + 1]; i++) {
        upper += options->option[i].count > split ? program->part[i] : 0.0;
    }
    search->decision[search->depth++] = (eplb_pair_decision){
        .expert = expert, .split = split, .is_upper = upper > 0.5, .trail = search->trail_length};
}

/* Goes into the branch of the last decision. */
static void enter(eplb_pair_search *search)
{
    const eplb_pair_options *options = &search->program->options;
    const eplb_pair_decision *decision = &search->decision[search->depth - 1];
    int32_t end = options->first[decision->expert + 1];
    for (int32_t i = options->first[decision->expert]; i < end; i++) {
        if ((options->option[i].count > decision->split) != decision->is_upper) {
            exclude(search, i);
        }
    }
}

/* Leaves branches until there is one whose other side is left, and goes there; false at the end. */
static bool go_on(eplb_pair_search *search)
{
    while (search->depth > 0) {
        eplb_pair_decision *decision = &search->decision[search->depth - 1];
        undo(search, decision->trail);
        if (!decision->is_second) {
            decision->is_second = true;
            decision->is_upper = !decision->is_upper;
            enter(search);
            return true;
        }
        search->depth--;
    }
    return false;
}

/* Looks at the branch at hand; `expert` is whose options to branch on when it is open. */
static eplb_status look(eplb_pair_search *search, verdict *found, int32_t *expert,
                        eplb_error *error)
{
    eplb_pair_program *program = search->program;
    *found = CLOSED;
    if (eplb_pair_program_is_refuted(program)) {
        return EPLB_OK;
    }
    exclude_dear(search);
    double slots;
    eplb_status status = eplb_pair_program_solve(program, INFINITY, &slots, error);
    if (status != EPLB_OK || eplb_pair_program_is_refuted(program)) {
        return status;
    }
    if (slots == INFINITY) {
        search->is_sure = false;
        return EPLB_OK;
    }
    *expert = round_parts(search);
    if (search->reach(search->context, search->count)) {
        *found = REACHED;
    } else if (*expert >= 0 && search->depth < EPLB_PAIR_DEPTH) {
        *found = OPEN;
    } else {
        /* Whole counts that have no place, or only beside replicas without load. */
        search->is_sure = false;
    }
    return EPLB_OK;
}

eplb_status eplb_pair_search_run(eplb_pair_search *search, int64_t most_nodes,
                                 eplb_pair_answer *answer, eplb_error *error)
{
    const eplb_refine_task *task = search->program->options.task;
    search->is_sure = true;
    search->depth = 0;
    search->trail_length = 0;
    *answer = EPLB_PAIR_UNKNOWN;
    bool is_left = true;
    while (is_left) {
        if (search->program->nodes >= most_nodes || task->stop(task->stop_context) != 0) {
            return EPLB_OK;
        }
        verdict found;
        int32_t expert = -1;
        eplb_status status = look(search, &found, &expert, error);
        if (status != EPLB_OK || found == REACHED) {
            *answer = EPLB_PAIR_REACHED;
            return status;
        }
        if (found == OPEN) {
            decide(search, expert);
            enter(search);
        } else {
            is_left = go_on(search);
        }
    }
    *answer = search->is_sure ? EPLB_PAIR_NONE : EPLB_PAIR_UNKNOWN;
    return EPLB_OK;
}
