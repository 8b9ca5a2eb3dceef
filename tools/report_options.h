/* SPDX-License-Identifier: MIT */
/* The command line of `eplb report`. */
#ifndef EPLB_TOOLS_REPORT_OPTIONS_H
#define EPLB_TOOLS_REPORT_OPTIONS_H

#include "counting.h"
#include "options.h"

typedef struct report_values {
    text_list loads;
    const char *from;
    counting_values counting;
    id_list dense_layers;
    const char *model;
    int32_t experts; /* 0: as the files say */
    const char *current;
    int32_t gpus;          /* 0: as the file of --current says */
    int32_t gpus_per_node; /* 0: all on one */
    int32_t slots;         /* 0: not given */
    int32_t redundant;     /* 0: none, or not given */
    int32_t topk;          /* 0: unknown */
    int32_t tokens;        /* of a step; 0: unknown */
    int32_t tile;
    double capacity_factor;
    const char *waits;
    int32_t threads; /* 0: the processors online */
    bool all;
    bool json;
} report_values;

extern const command report_command;
extern const report_values report_values_default;

/* What each option alone cannot tell: what is missing, and what goes together. Returns an exit
 * code, with a message. */
int report_values_check(const report_values *values);

#endif
