/* SPDX-License-Identifier: MIT */
/* The steps of a file, and the tokens of each, from rows in any order. */
#ifndef EPLB_FORMAT_STEP_LIST_H
#define EPLB_FORMAT_STEP_LIST_H

#include "format/format.h"

typedef struct eplb_step_tokens {
    int64_t step;
    double tokens;
} eplb_step_tokens;

/* Starts as zeros, but for hooks. */
typedef struct eplb_step_list {
    eplb_hooks hooks;
    eplb_step_tokens *items; /* [count]; a step may stand there more than once until it is sorted */
    size_t count;
    size_t capacity;
} eplb_step_list;

/* Adds a row. */
eplb_status eplb_step_list_add(eplb_step_list *list, const eplb_counts_row *row, eplb_error *error);

/* Orders the list by step, each step once with the sum of its tokens. */
void eplb_step_list_sort(eplb_step_list *list);

/* The index of the first step in which two sorted lists differ; SIZE_MAX when they do not. */
size_t eplb_step_list_difference(const eplb_step_list *a, const eplb_step_list *b);

void eplb_step_list_clear(eplb_step_list *list);

#endif
