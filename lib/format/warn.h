/* SPDX-License-Identifier: MIT */
#ifndef EPLB_FORMAT_WARN_H
#define EPLB_FORMAT_WARN_H

#include <eplb/hooks.h>

/* Hands one line to the log hook as a warning; does nothing without one. The log of lib/base is not
 * exported to this library. */
void eplb_warn(const eplb_hooks *hooks, const char *format, ...) EPLB_PRINTF(2, 3);

#endif
