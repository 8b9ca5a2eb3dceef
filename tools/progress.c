/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <stdio.h>
#include <unistd.h>

void progress_begin(progress *self)
{
    self->is_terminal = isatty(STDERR_FILENO) != 0;
    self->shown = false;
    clock_gettime(CLOCK_MONOTONIC, &self->start);
}

int progress_report(void *context, int32_t done, int32_t all)
{
    progress *self = context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (self->is_terminal && now.tv_sec - self->start.tv_sec >= 2) {
        fprintf(stderr, "\rplanned %d of %d layers", done, all);
        self->shown = true;
    }
    return 0;
}

void progress_end(progress *self)
{
    if (self->shown) {
        fprintf(stderr, "\r%40s\r", "");
    }
}
