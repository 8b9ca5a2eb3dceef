/* SPDX-License-Identifier: MIT */
/* What eplb validate says about a placement that it could read. */
#ifndef EPLB_TOOLS_VALIDATE_REPORT_H
#define EPLB_TOOLS_VALIDATE_REPORT_H

#include <stdbool.h>

#include <eplb/engine.h>

typedef struct validate_report {
    const char *file;
    const eplb_format *format;
    const eplb_placement *placement;
    const eplb_engine *engine; /* whose rules are checked; NULL: none */
    eplb_engine_model model;
    bool explain; /* what the engine does; without one, the engine that loads the format */
} validate_report;

/* Checks the placement and prints a list for people, or one JSON document. Returns an exit code. */
int validate_print_list(const validate_report *self);
int validate_print_json(const validate_report *self);

#endif
