/* SPDX-License-Identifier: MIT */
#include "model/assignment.h"

#include <stdbool.h>

#include "base/memory.h"

/* Columns and rows are numbered from 1 here; 0 is none, or where a path begins. */
typedef struct assignment {
    int32_t n;
    const int64_t *cost;
    int64_t *row_price;    /* [n + 1] */
    int64_t *column_price; /* [n + 1] */
    int64_t *distance;     /* [n + 1] of the shortest path to each column */
    int32_t *row_of;       /* [n + 1] the row that has the column */
    int32_t *before;       /* [n + 1] the column before it on that path */
    bool *done;            /* [n + 1] */
} assignment;

/* Takes the nearest column whose path is final into the tree; returns it. */
static int32_t extend(assignment *a, int32_t from)
{
    int32_t row = a->row_of[from];
    int32_t nearest = 0;
    a->done[from] = true;
    for (int32_t j = 1; j <= a->n; j++) {
        if (a->done[j]) {
            continue;
        }
        int64_t cost = a->cost[(size_t)(row - 1) * (size_t)a->n + (size_t)(j - 1)] -
                       a->row_price[row] - a->column_price[j];
        if (cost < a->distance[j]) {
            a->distance[j] = cost;
            a->before[j] = from;
        }
        if (nearest == 0 || a->distance[j] < a->distance[nearest]) {
            nearest = j;
        }
    }
    int64_t step = a->distance[nearest];
    for (int32_t j = 0; j <= a->n; j++) {
        if (a->done[j]) {
            a->row_price[a->row_of[j]] += step;
            a->column_price[j] -= step;
        } else {
            a->distance[j] -= step;
        }
    }
    return nearest;
}

static void add_row(assignment *a, int32_t row)
{
    for (int32_t j = 0; j <= a->n; j++) {
        a->distance[j] = INT64_MAX;
        a->done[j] = false;
    }
    a->row_of[0] = row;
    int32_t column = 0;
    do {
        column = extend(a, column);
    } while (a->row_of[column] != 0);
    while (column != 0) {
        a->row_of[column] = a->row_of[a->before[column]];
        column = a->before[column];
    }
}

eplb_status eplb_assign(const eplb_hooks *hooks, int32_t n, const int64_t *cost, int32_t *column,
                        eplb_error *error)
{
    assignment a = {.n = n, .cost = cost};
    size_t length = (size_t)n + 1;
    const eplb_array arrays[] = {
        EPLB_ARRAY(a.row_price, length), EPLB_ARRAY(a.column_price, length),
        EPLB_ARRAY(a.distance, length),  EPLB_ARRAY(a.row_of, length),
        EPLB_ARRAY(a.before, length),    EPLB_ARRAY(a.done, length),
    };
    size_t count = sizeof(arrays) / sizeof(arrays[0]);
    eplb_status status = eplb_alloc_arrays(hooks, arrays, count, error);
    if (status == EPLB_OK) {
        for (int32_t row = 1; row <= n; row++) {
            add_row(&a, row);
        }
        for (int32_t j = 1; j <= n; j++) {
            column[a.row_of[j] - 1] = j - 1;
        }
    }
    for (size_t i = 0; i < count; i++) {
        eplb_free(hooks, *arrays[i].memory);
    }
    return status;
}
