/* SPDX-License-Identifier: MIT */
#include "processors.h"

#include <unistd.h>

int32_t planning_threads(int32_t given)
{
    if (given > 0) {
        return given;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : online > 8 ? 8 : (int32_t)online;
}
