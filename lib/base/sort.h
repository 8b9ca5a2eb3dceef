/* SPDX-License-Identifier: MIT */
#ifndef EPLB_BASE_SORT_H
#define EPLB_BASE_SORT_H

#include <stdint.h>

/* Sorts ids by key[id], largest first, equal keys by smaller id. `scratch` is as long as `ids`. */
void eplb_sort_descending(int32_t *ids, int32_t count, const double *key, int32_t *scratch);

#endif
