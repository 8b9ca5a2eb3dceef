/* SPDX-License-Identifier: MIT */
#include "format/warn.h"

#include <stdarg.h>

#include <eplb/status.h>

void eplb_warn(const eplb_hooks *hooks, const char *format, ...)
{
    if (hooks->log == NULL) {
        return;
    }
    eplb_error line; /* makes one harmless line of what is quoted */
    va_list arguments;
    va_start(arguments, format);
    eplb_error_set_va(&line, EPLB_OK, format, arguments);
    va_end(arguments);
    hooks->log(hooks->log_context, EPLB_LOG_WARNING, line.message);
}
