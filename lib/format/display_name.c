/* SPDX-License-Identifier: MIT */
#include "format/display_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Bytes that are kept of a long path: directories often differ at the start, names at the end. */
#define HEAD ((size_t)80)
#define TAIL ((size_t)100)

static bool inside_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

static void shorten(char *text, const char *path, size_t length)
{
    static const char gap[] = "...";
    size_t head = HEAD;
    size_t tail = length - TAIL;
    while (head > 0 && inside_character(path[head])) {
        head--;
    }
    while (inside_character(path[tail])) {
        tail++;
    }
    memcpy(text, path, head);
    strcpy(text + head, gap);
    strcat(text + head, path + tail);
}

eplb_display_name eplb_display_name_of(const char *path)
{
    eplb_display_name name;
    const char *shown = strcmp(path, "-") == 0 ? "standard input" : path;
    size_t length = strlen(shown);
    if (length < sizeof(name.text)) {
        memcpy(name.text, shown, length + 1);
    } else {
        shorten(name.text, shown, length);
    }
    return name;
}
