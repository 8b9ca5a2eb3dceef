/* SPDX-License-Identifier: MIT */
#ifndef EPLB_BASE_CRC32C_H
#define EPLB_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * Goes on with the CRC-32C (Castagnoli; RFC 3720, B.4) of what came before, 0 at the beginning, so
 * that parts give what the whole gives. Finds every error within 32 bits that follow each other.
 */
uint32_t eplb_crc32c(uint32_t crc, const uint8_t *bytes, size_t size);

#endif
