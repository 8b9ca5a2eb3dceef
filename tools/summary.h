/* SPDX-License-Identifier: MIT */
/* Mean and worst of an imbalance over layers. */
#ifndef EPLB_TOOLS_SUMMARY_H
#define EPLB_TOOLS_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* Begins with zeros; meaningless when nothing was added. */
typedef struct summary {
    double mean; /* the sum, before summary_finish */
    double worst;
} summary;

void summary_add(summary *self, double value);

/* After `count` values, of which there may be none. */
void summary_finish(summary *self, int32_t count);

/* Adds {mean, worst}, or nulls where there are none. */
void json_add_summary(cJSON *object, const char *name, bool exists, const summary *self);

#endif
