/* SPDX-License-Identifier: MIT */
#include "formats.h"

#include <stdio.h>

#include "message.h"
#include "nearest.h"

/* "a, b, c": the formats that can. */
static void list_formats(uint32_t ability, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; eplb_format_at(i) != NULL && used < size; i++) {
        if ((eplb_format_flags(eplb_format_at(i)) & ability) != 0) {
            int length = snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "",
                                  eplb_format_name(eplb_format_at(i)));
            used += length > 0 ? (size_t)length : 0;
        }
    }
}

static int refuse(const char *command, const char *option, const char *name, uint32_t ability)
{
    char names[256];
    list_formats(ability, names, sizeof(names));
    nearest search;
    nearest_begin(&search, name);
    for (size_t i = 0; eplb_format_at(i) != NULL; i++) {
        if ((eplb_format_flags(eplb_format_at(i)) & ability) != 0) {
            nearest_offer(&search, eplb_format_name(eplb_format_at(i)));
        }
    }
    char hint[64];
    return usage_error(command, "--%s '%s': not one of %s%s", option, name, names,
                       nearest_hint(&search, "", hint, sizeof(hint)));
}

int find_format(const char *command, const char *option, const char *name, uint32_t ability,
                const eplb_format **format)
{
    *format = NULL;
    if (name == NULL) {
        return EXIT_DONE;
    }
    *format = eplb_format_find(name);
    if (*format == NULL || (eplb_format_flags(*format) & ability) == 0) {
        return refuse(command, option, name, ability);
    }
    return EXIT_DONE;
}

eplb_read_options reading_options(const eplb_format *format, int32_t experts)
{
    eplb_read_options reading;
    eplb_read_options_init(&reading);
    reading.format = format;
    reading.experts = experts;
    reading.max_experts = experts > reading.max_experts ? experts : reading.max_experts;
    return reading;
}

void note_assumed_experts(int32_t experts)
{
    fprintf(stderr, "eplb: assuming %d logical experts (--experts %d checks it)\n", experts,
            experts);
}
