/* SPDX-License-Identifier: MIT */
/* The scenarios of a source: runs of its steps. */
#ifndef EPLB_FORMAT_SLICES_H
#define EPLB_FORMAT_SLICES_H

#include "format/step_list.h"

typedef struct eplb_slices {
    int32_t count;          /* >= 1 */
    int32_t first_scenario; /* of the load */
    int64_t *starts;        /* [count], the first step of each; NULL when there is one slice */
    size_t steps;           /* that were cut */
    double tokens;          /* of them all */
} eplb_slices;

/*
 * Cuts sorted steps into at most `wanted` slices: cut k lies where the tokens before it are nearest
 * to k/count of all, an earlier place before a later one, and each slice has a step with tokens
 * unless no step has any. `starts` are the caller's.
 */
eplb_status eplb_slices_cut(eplb_slices *slices, const eplb_step_list *steps, int32_t wanted,
                            eplb_error *error);

/* Whether the steps of a second reading are those that were cut, with as many tokens. */
bool eplb_slices_are_of(const eplb_slices *slices, const eplb_step_list *steps);

/* The slice of a step. */
int32_t eplb_slices_find(const eplb_slices *slices, int64_t step);

#endif
