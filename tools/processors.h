/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_PROCESSORS_H
#define EPLB_TOOLS_PROCESSORS_H

#include <stdint.h>

/* Threads to plan with: as many as were given, or, for 0, the processors online, at most 8. */
int32_t planning_threads(int32_t given);

#endif
