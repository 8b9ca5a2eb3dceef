/* SPDX-License-Identifier: MIT */
/*
 * A linear or mixed-integer program in own memory: minimise sum cost_j x_j subject to
 * lower_i <= sum_j a_ij x_j <= upper_i and lower_j <= x_j <= upper_j. Rows and columns are numbered
 * from 0; -INFINITY and INFINITY are bounds that are none.
 *
 * The functions that add do not fail one by one: once memory is out they do nothing, and
 * eplb_ilp_model_status says so.
 */
#ifndef EPLB_ILP_MODEL_H
#define EPLB_ILP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

typedef struct eplb_ilp_column {
    double lower;
    double upper;
    double cost;
    bool is_integer;
} eplb_ilp_column;

typedef struct eplb_ilp_row {
    double lower;
    double upper;
} eplb_ilp_row;

typedef struct eplb_ilp_entry {
    int32_t row;
    int32_t column;
    double value;
} eplb_ilp_entry;

typedef struct eplb_ilp_model {
    eplb_hooks hooks;
    eplb_ilp_column *columns;
    eplb_ilp_row *rows;
    eplb_ilp_entry *entries; /* each (row, column) at most once */
    int32_t column_count;
    int32_t row_count;
    int32_t entry_count;
    int32_t column_capacity;
    int32_t row_capacity;
    int32_t entry_capacity;
    bool out_of_memory;
} eplb_ilp_model;

/* `hooks` must be complete (eplb_hooks_resolve). */
void eplb_ilp_model_init(eplb_ilp_model *model, const eplb_hooks *hooks);
void eplb_ilp_model_free(eplb_ilp_model *model);

/* Takes everything out and keeps the memory. */
void eplb_ilp_model_clear(eplb_ilp_model *model);

/* The number of the new column or row. */
int32_t eplb_ilp_add_column(eplb_ilp_model *model, double lower, double upper, double cost);
int32_t eplb_ilp_add_binary(eplb_ilp_model *model, double cost);
int32_t eplb_ilp_add_row(eplb_ilp_model *model, double lower, double upper);
void eplb_ilp_add_entry(eplb_ilp_model *model, int32_t row, int32_t column, double value);

eplb_status eplb_ilp_model_status(const eplb_ilp_model *model, eplb_error *error);

#endif
