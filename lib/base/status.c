/* SPDX-License-Identifier: MIT */
#include <eplb/status.h>

#include <stdio.h>

const char *eplb_status_text(eplb_status status)
{
    switch (status) {
    case EPLB_OK:
        return "success";
    case EPLB_END:
        return "no more items";
    case EPLB_ERROR_ARGUMENT:
        return "argument out of range";
    case EPLB_ERROR_NOMEM:
        return "out of memory";
    case EPLB_ERROR_OVERFLOW:
        return "number too large";
    case EPLB_ERROR_DATA:
        return "invalid data";
    case EPLB_ERROR_INFEASIBLE:
        return "no valid placement exists";
    case EPLB_ERROR_PARSE:
        return "malformed file";
    case EPLB_ERROR_UNSUPPORTED:
        return "not supported";
    case EPLB_ERROR_LIMIT:
        return "limit exceeded";
    case EPLB_ERROR_IO:
        return "input or output failed";
    }
    return "unknown status";
}

eplb_status eplb_error_set_va(eplb_error *error, eplb_status status, const char *format,
                              va_list arguments)
{
    if (error == NULL) {
        return status;
    }
    error->status = (int32_t)status;
    if (vsnprintf(error->message, sizeof(error->message), format, arguments) < 0) {
        error->message[0] = '\0';
    }
    /* Messages quote files: what would break a log line or steer a terminal must not get out. */
    for (char *c = error->message; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
    return status;
}

eplb_status eplb_error_set(eplb_error *error, eplb_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    eplb_error_set_va(error, status, format, arguments);
    va_end(arguments);
    return status;
}
