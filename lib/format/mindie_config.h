/* SPDX-License-Identifier: MIT */
/* The model_gen_config.json beside MindIE's counts. */
#ifndef EPLB_FORMAT_MINDIE_CONFIG_H
#define EPLB_FORMAT_MINDIE_CONFIG_H

#include "format/format.h"

#define EPLB_MINDIE_CONFIG "model_gen_config.json"

/* What it says of the counts. */
typedef struct eplb_mindie_config {
    int32_t layers;  /* of an iteration, >= 1 */
    int32_t experts; /* of the model; 0: it does not say */
} eplb_mindie_config;

/* Reads it in the directory that is being read. */
eplb_status eplb_mindie_config_read(const eplb_reading *directory, eplb_mindie_config *config,
                                    eplb_error *error);

#endif
