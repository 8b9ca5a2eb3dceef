/* SPDX-License-Identifier: MIT */
#ifndef EPLB_BASE_LOG_H
#define EPLB_BASE_LOG_H

#include <eplb/hooks.h>
#include <eplb/status.h>

/* Hands one line to the log hook; does nothing without one. */
void eplb_log(const eplb_hooks *hooks, eplb_log_level level, const char *format, ...)
    EPLB_PRINTF(3, 4);

#endif
