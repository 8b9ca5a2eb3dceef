/* SPDX-License-Identifier: MIT */
/* The command line of `eplb sweep`. */
#ifndef EPLB_TOOLS_SWEEP_OPTIONS_H
#define EPLB_TOOLS_SWEEP_OPTIONS_H

#include "counting.h"
#include "options.h"

typedef struct sweep_values {
    text_list loads;
    const char *from;
    counting_values counting;
    int32_t slices;  /* 0: what the library does */
    int32_t experts; /* 0: as the files say */
    id_list dense_layers;
    const char *model;
    int64_t expert_bytes; /* 0: not known */
    id_list gpus;
    id_list redundant;
    int32_t objective;
    int32_t effort;
    int32_t threads; /* 0: the processors online */
    bool json;
} sweep_values;

extern const command sweep_command;
extern const sweep_values sweep_values_default;

/* What each option alone cannot tell. Returns an exit code, with a message. */
int sweep_values_check(const sweep_values *values);

#endif
