/* SPDX-License-Identifier: MIT */
/* Numbers of bytes, as people write them. */
#ifndef EPLB_TOOLS_BYTE_SIZE_H
#define EPLB_TOOLS_BYTE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest size that is read, 8 PiB: up to here every whole number is a double. */
#define LARGEST_SIZE (INT64_C(1) << 53)

/*
 * Reads a decimal number such as 80, 1.5 or 40e9 with an optional unit: k, M, G, T are powers of
 * 1000, Ki, Mi, Gi, Ti powers of 1024, each with or without B, and B alone is bytes. It must be the
 * whole of `text` up to `end`. Parts of a byte are dropped. False: no such number, or beyond
 * LARGEST_SIZE.
 */
bool parse_byte_size(const char *text, const char *end, int64_t *bytes);

#endif
