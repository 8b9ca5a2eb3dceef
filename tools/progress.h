/* SPDX-License-Identifier: MIT */
/* Progress of long work, on standard error when that is a terminal. */
#ifndef EPLB_TOOLS_PROGRESS_H
#define EPLB_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct progress {
    bool is_terminal;
    bool shown;
    struct timespec start;
} progress;

void progress_begin(progress *self);

/* The progress callback of eplb_plan_options; never stops the work. */
int progress_report(void *self, int32_t done, int32_t all);

/* Removes what was shown. */
void progress_end(progress *self);

#endif
