/* SPDX-License-Identifier: MIT */
#include <eplb/status.h>

#include "base/text.h"

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
    eplb_format_line(error->message, sizeof(error->message), format, arguments);
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
