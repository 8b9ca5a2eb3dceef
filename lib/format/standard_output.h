/* SPDX-License-Identifier: MIT */
#ifndef EPLB_FORMAT_STANDARD_OUTPUT_H
#define EPLB_FORMAT_STANDARD_OUTPUT_H

#include <stddef.h>

#include <eplb/status.h>

/* Writes all of it, past any buffer of <stdio.h>. */
eplb_status eplb_write_standard_output(const char *text, size_t length, eplb_error *error);

#endif
