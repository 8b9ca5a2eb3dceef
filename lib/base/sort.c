/* SPDX-License-Identifier: MIT */
#include "base/sort.h"

#include <stdbool.h>
#include <string.h>

/* Runs of this many ids are sorted by insertion before they are merged. */
#define RUN 16

static inline bool comes_before(int32_t a, int32_t b, const double *key)
{
    return key[a] > key[b] || (key[a] == key[b] && a < b);
}

static void sort_run(int32_t *ids, int32_t count, const double *key)
{
    for (int32_t i = 1; i < count; i++) {
        int32_t id = ids[i];
        int32_t k = i;
        while (k > 0 && comes_before(id, ids[k - 1], key)) {
            ids[k] = ids[k - 1];
            k--;
        }
        ids[k] = id;
    }
}

static void merge(int32_t *to, const int32_t *left, int32_t lefts, const int32_t *right,
                  int32_t rights, const double *key)
{
    int32_t l = 0;
    int32_t r = 0;
    for (int32_t i = 0; i < lefts + rights; i++) {
        bool take_right = l == lefts || (r < rights && comes_before(right[r], left[l], key));
        to[i] = take_right ? right[r++] : left[l++];
    }
}

/* A merge sort of its own: qsort may allocate, and its order of equal ids is its own affair. */
void eplb_sort_descending(int32_t *ids, int32_t count, const double *key, int32_t *scratch)
{
    for (int32_t i = 0; i < count; i += RUN) {
        sort_run(ids + i, count - i < RUN ? count - i : RUN, key);
    }
    for (int32_t width = RUN; width < count; width *= 2) {
        for (int32_t i = 0; i < count; i += 2 * width) {
            int32_t lefts = count - i < width ? count - i : width;
            int32_t rights = count - i - lefts < width ? count - i - lefts : width;
            merge(scratch + i, ids + i, lefts, ids + i + lefts, rights, key);
        }
        memcpy(ids, scratch, (size_t)count * sizeof(*ids));
    }
}
