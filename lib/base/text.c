/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Number of bytes of the UTF-8 character that starts with `first`. */
static size_t character_size(unsigned char first)
{
    if (first < 0xc0) {
        return 1;
    }
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Removes a character at the end of which bytes are missing. */
static void drop_cut_character(char *line, size_t length)
{
    size_t start = length;
    while (start > 0 && length - start < 3 && ((unsigned char)line[start - 1] & 0xc0) == 0x80) {
        start--;
    }
    if (start > 0 && start - 1 + character_size((unsigned char)line[start - 1]) > length) {
        line[start - 1] = '\0';
    }
}

/* Bytes of the character that starts here; 0: it is a control character, or no UTF-8 (RFC 3629). */
static size_t printable_size(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0x20, 0xa0, 0x800, 0x10000};
    size_t size = character_size(text[0]);
    uint32_t value = size == 1 ? text[0] : text[0] & (0xffu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
        value = value << 6 | (text[i] & 0x3fu);
    }
    bool is_one = value >= least[size] && value <= 0x10ffff && (value & ~0x7ffu) != 0xd800;
    return is_one && (size > 1 || value < 0x7f) ? size : 0;
}

void eplb_format_line(char *line, size_t size, const char *format, va_list arguments)
{
    int length = vsnprintf(line, size, format, arguments);
    if (length < 0) {
        line[0] = '\0';
    } else if ((size_t)length >= size) {
        drop_cut_character(line, size - 1);
    }
    while (*line != '\0') {
        size_t shown = printable_size((const unsigned char *)line);
        if (shown == 0) {
            *line = '?';
        }
        line += shown > 0 ? shown : 1;
    }
}
