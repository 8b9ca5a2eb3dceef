/* SPDX-License-Identifier: MIT */
#ifndef EPLB_BASE_TEXT_H
#define EPLB_BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

#include <eplb/export.h>

/*
 * As vsnprintf, for text that people read: one line whatever is quoted in it (control characters
 * and bytes that are no UTF-8 become '?': they could break a log or steer a terminal), cut between
 * characters.
 */
void eplb_format_line(char *line, size_t size, const char *format, va_list arguments)
    EPLB_PRINTF(3, 0);

#endif
