/* SPDX-License-Identifier: MIT */
/* Short runs of digits, eight bytes at a time and without a branch for each digit: in logs the
 * lengths of numbers are random, and a branch on them is mispredicted every other time. */
#ifndef EPLB_FORMAT_DIGITS_H
#define EPLB_FORMAT_DIGITS_H

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Eight bytes of text, the first one lowest. */
static inline uint64_t eplb_digits_load(const char *text)
{
    uint64_t word;
    memcpy(&word, text, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* 0x80 in the place of each byte that is no digit, else 0. */
static inline uint64_t eplb_digits_ends(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101;
    uint64_t value = word ^ ones * '0';
    return (((value & ones * 0x7f) + ones * 0x76) | value) & ones * 0x80;
}

#define EPLB_DIGITS_BLOCK 64

/* A bit for each of 16 bytes of text that is no digit, the first one lowest. */
static inline uint64_t eplb_digits_some_ends(const char *text)
{
#ifdef __SSE2__
    __m128i value =
        _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)text), _mm_set1_epi8('0'));
    __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value);
    return (uint64_t)_mm_movemask_epi8(is_digit) ^ 0xffff;
#else
    uint64_t bits = 0;
    for (unsigned i = 0; i < 16; i += 8) {
        uint64_t ends = eplb_digits_ends(eplb_digits_load(text + i)) >> 7;
        bits |= (ends * 0x0102040810204080 >> 56) << i;
    }
    return bits;
#endif
}

/* A bit for each byte of a block of text that is no digit. */
static inline uint64_t eplb_digits_block_ends(const char *text)
{
    return eplb_digits_some_ends(text) | eplb_digits_some_ends(text + 16) << 16 |
           eplb_digits_some_ends(text + 32) << 32 | eplb_digits_some_ends(text + 48) << 48;
}

/* The number that the first `length` bytes are, 1 to 8 digits. They are moved to the end of the
 * word, with zeros before them; then pairs, fours and eights are joined. */
static inline uint64_t eplb_digits_value(uint64_t word, unsigned length)
{
    const uint64_t ones = 0x0101010101010101;
    const uint64_t every_fourth = 0x000000ff000000ff;
    uint64_t digits = (word ^ ones * '0') << (64 - 8 * length);
    uint64_t pairs = digits * 10 + (digits >> 8);
    uint64_t first = (pairs & every_fourth) * (100 + ((uint64_t)1000000 << 32));
    uint64_t second = (pairs >> 16 & every_fourth) * (1 + ((uint64_t)10000 << 32));
    return (first + second) >> 32;
}

#endif
