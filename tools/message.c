/* SPDX-License-Identifier: MIT */
#include "message.h"

#include <stdio.h>

#include <eplb/hooks.h>

int fail(const eplb_error *error)
{
    fprintf(stderr, "eplb: %s\n", error->message);
    return EXIT_FAILED;
}

int usage_error(const char *command, const char *format, ...)
{
    eplb_error line; /* eplb_error_set makes one harmless line of what the user typed */
    va_list arguments;
    va_start(arguments, format);
    eplb_error_set_va(&line, EPLB_ERROR_ARGUMENT, format, arguments);
    va_end(arguments);
    fprintf(stderr, "eplb: %s (see 'eplb %s%s--help')\n", line.message,
            command != NULL ? command : "", command != NULL ? " " : "");
    return EXIT_USAGE;
}

const char *plural(int64_t number)
{
    return number == 1 ? "" : "s";
}

void print_warning(void *context, int32_t level, const char *message)
{
    (void)context;
    if (level >= EPLB_LOG_WARNING) {
        eplb_error line;
        eplb_error_set(&line, EPLB_OK, "%s", message);
        fprintf(stderr, "eplb: warning: %s\n", line.message);
    }
}
