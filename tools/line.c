/* SPDX-License-Identifier: MIT */
#include "line.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* What is quoted could break a log or steer a terminal. */
static void make_harmless(char *text)
{
    for (; *text != '\0'; text++) {
        bool is_control = (unsigned char)*text < 0x20 || *text == 0x7f;
        *text = is_control ? '?' : *text;
    }
}

line line_begin(char *text, size_t size)
{
    text[0] = '\0';
    return (line){.text = text, .size = size};
}

void line_add(line *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(self->text + self->used, self->size - self->used, format, arguments);
    va_end(arguments);
    size_t room = self->size - self->used - 1;
    if (length > 0) {
        make_harmless(self->text + self->used);
        self->used += (size_t)length < room ? (size_t)length : room;
    }
}

void line_add_count(line *self, double count, const char *thing)
{
    double whole = floor(count + 0.5);
    bool has_fraction = count < 10.0 && fabs(count - whole) > 1e-6;
    line_add(self, has_fraction ? "%.2g %s%s" : "%.0f %s%s", count, thing,
             !has_fraction && whole > 0.5 && whole < 1.5 ? "" : "s");
}
