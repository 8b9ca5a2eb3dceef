/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

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

void eplb_format_line(char *line, size_t size, const char *format, va_list arguments)
{
    int length = vsnprintf(line, size, format, arguments);
    if (length < 0) {
        line[0] = '\0';
    } else if ((size_t)length >= size) {
        drop_cut_character(line, size - 1);
    }
    for (char *c = line; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
}
