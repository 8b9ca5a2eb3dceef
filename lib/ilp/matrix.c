/* SPDX-License-Identifier: MIT */
#include "ilp/matrix.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

/* Bounds of integer columns are meant to be integers, but for rounding. */
#define ROUNDING 1e-9

static eplb_status check_columns(const eplb_ilp_model *model, eplb_error *error)
{
    for (int32_t j = 0; j < model->column_count; j++) {
        const eplb_ilp_column *column = &model->columns[j];
        if (isnan(column->lower) || isnan(column->upper) || !isfinite(column->cost)) {
            return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                  "ilp: column %d: bounds %g..%g, cost %g", j, column->lower,
                                  column->upper, column->cost);
        }
    }
    return EPLB_OK;
}

static eplb_status check_rows(const eplb_ilp_model *model, eplb_error *error)
{
    for (int32_t i = 0; i < model->row_count; i++) {
        const eplb_ilp_row *row = &model->rows[i];
        if (isnan(row->lower) || isnan(row->upper)) {
            return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "ilp: row %d: bounds %g..%g", i,
                                  row->lower, row->upper);
        }
    }
    return EPLB_OK;
}

static eplb_status check_entries(const eplb_ilp_model *model, eplb_error *error)
{
    for (int32_t k = 0; k < model->entry_count; k++) {
        const eplb_ilp_entry *entry = &model->entries[k];
        if (entry->row < 0 || entry->row >= model->row_count || entry->column < 0 ||
            entry->column >= model->column_count || !isfinite(entry->value)) {
            return eplb_error_set(
                error, EPLB_ERROR_ARGUMENT, "ilp: entry %d: %g in row %d of %d, column %d of %d", k,
                entry->value, entry->row, model->row_count, entry->column, model->column_count);
        }
    }
    return EPLB_OK;
}

/* `seen` [columns]: the last row that had the column, from 1. */
static eplb_status check_distinct(const eplb_ilp_matrix *matrix, const eplb_ilp_model *model,
                                  int32_t *seen, eplb_error *error)
{
    for (int32_t i = 0; i < model->row_count; i++) {
        for (int32_t k = matrix->start[i] + 1; k <= matrix->start[i + 1]; k++) {
            int32_t j = matrix->column[k] - 1;
            if (seen[j] == i + 1) {
                return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                      "ilp: row %d has two entries in column %d", i, j);
            }
            seen[j] = i + 1;
        }
    }
    return EPLB_OK;
}

/* Counting sort; start[i + 1] runs through row i's places while it is filled. */
static void sort_entries(eplb_ilp_matrix *matrix, const eplb_ilp_model *model)
{
    for (int32_t k = 0; k < model->entry_count; k++) {
        int32_t next = model->entries[k].row + 2;
        if (next <= model->row_count) {
            matrix->start[next]++;
        }
    }
    for (int32_t i = 2; i <= model->row_count; i++) {
        matrix->start[i] += matrix->start[i - 1];
    }
    for (int32_t k = 0; k < model->entry_count; k++) {
        const eplb_ilp_entry *entry = &model->entries[k];
        int32_t place = ++matrix->start[entry->row + 1];
        matrix->column[place] = entry->column + 1;
        matrix->value[place] = entry->value;
    }
}

eplb_status eplb_ilp_matrix_init(eplb_ilp_matrix *matrix, const eplb_ilp_model *model,
                                 eplb_error *error)
{
    *matrix = (eplb_ilp_matrix){0};
    eplb_status status = check_columns(model, error);
    status = status == EPLB_OK ? check_rows(model, error) : status;
    status = status == EPLB_OK ? check_entries(model, error) : status;
    if (status != EPLB_OK) {
        return status;
    }
    int32_t *seen = NULL;
    const eplb_array arrays[] = {
        EPLB_ARRAY(matrix->start, (size_t)model->row_count + 1),
        EPLB_ARRAY(matrix->column, (size_t)model->entry_count + 1),
        EPLB_ARRAY(matrix->value, (size_t)model->entry_count + 1),
        EPLB_ARRAY(seen, (size_t)model->column_count),
    };
    status = eplb_alloc_arrays(&model->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
    if (status == EPLB_OK) {
        sort_entries(matrix, model);
        status = check_distinct(matrix, model, seen, error);
    }
    eplb_free(&model->hooks, seen);
    return status;
}

void eplb_ilp_matrix_free(eplb_ilp_matrix *matrix, const eplb_hooks *hooks)
{
    eplb_free(hooks, matrix->start);
    eplb_free(hooks, matrix->column);
    eplb_free(hooks, matrix->value);
    *matrix = (eplb_ilp_matrix){0};
}

double eplb_ilp_lower(const eplb_ilp_column *column)
{
    return column->is_integer ? ceil(column->lower - ROUNDING) : column->lower;
}

double eplb_ilp_upper(const eplb_ilp_column *column)
{
    return column->is_integer ? floor(column->upper + ROUNDING) : column->upper;
}

/* False also for what is not finite. */
static bool is_within(double value, double lower, double upper, double slack)
{
    return isfinite(value) && value >= lower - slack && value <= upper + slack;
}

static bool accept_columns(const eplb_ilp_model *model, double tolerance, double *values)
{
    for (int32_t j = 0; j < model->column_count; j++) {
        const eplb_ilp_column *column = &model->columns[j];
        double value = column->is_integer ? floor(values[j] + 0.5) : values[j];
        double lower = eplb_ilp_lower(column);
        double upper = eplb_ilp_upper(column);
        double slack = tolerance * fmax(1.0, fabs(value));
        if (fabs(value - values[j]) > tolerance || !is_within(value, lower, upper, slack)) {
            return false;
        }
        values[j] = value < lower ? lower : value > upper ? upper : value;
    }
    return true;
}

bool eplb_ilp_accept(const eplb_ilp_model *model, const eplb_ilp_matrix *matrix, double tolerance,
                     double *values)
{
    if (!accept_columns(model, tolerance, values)) {
        return false;
    }
    for (int32_t i = 0; i < model->row_count; i++) {
        double sum = 0.0;
        double largest = 1.0;
        for (int32_t k = matrix->start[i] + 1; k <= matrix->start[i + 1]; k++) {
            double term = matrix->value[k] * values[matrix->column[k] - 1];
            sum += term;
            largest = fmax(largest, fabs(term));
        }
        if (!is_within(sum, model->rows[i].lower, model->rows[i].upper, tolerance * largest)) {
            return false;
        }
    }
    return true;
}

double eplb_ilp_objective(const eplb_ilp_model *model, const double *values)
{
    double sum = 0.0;
    for (int32_t j = 0; j < model->column_count; j++) {
        sum += model->columns[j].cost * values[j];
    }
    return sum;
}
