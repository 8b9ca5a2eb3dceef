/* SPDX-License-Identifier: MIT */
/* The command line of `eplb convert`. */
#ifndef EPLB_TOOLS_CONVERT_OPTIONS_H
#define EPLB_TOOLS_CONVERT_OPTIONS_H

#include "counting.h"
#include "options.h"

typedef struct convert_values {
    text_list files;
    int32_t what; /* NOT_GIVEN: what the content is */
    const char *from;
    const char *to;
    const char *out;
    counting_values counting;
    int32_t gpus;    /* 0: as the file says */
    int32_t experts; /* 0: as the files say */
    id_list dense_layers;
    const char *model;
    int32_t draft_layers; /* NOT_GIVEN: as the file says */
    bool without_draft_layers;
    bool list;
    bool json;
} convert_values;

/* Values of --what. */
enum { WHAT_COUNTS, WHAT_PLACEMENT };

extern const command convert_command;
extern const convert_values convert_values_default;

/* The name of an option for placements only; NULL: none was given. */
const char *convert_placement_option_given(const convert_values *values);

/* What each option alone cannot tell. Returns an exit code, with a message. */
int convert_values_check(const convert_values *values);

#endif
