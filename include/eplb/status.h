/* SPDX-License-Identifier: MIT */
/*
 * Results of calls. Every function that can fail returns an eplb_status and takes an eplb_error as
 * its last argument, which the caller owns and which may be NULL. On failure the error carries the
 * status and one line that names what was wrong, with its value and place; outputs are left as they
 * were (pointers to new objects are set to NULL). On success the error is not touched.
 *
 * Pointers must be valid unless a comment says that they may be NULL. Some NULLs are refused with
 * EPLB_ERROR_ARGUMENT all the same: outputs of functions that make objects, arrays of numbers.
 */
#ifndef EPLB_STATUS_H
#define EPLB_STATUS_H

#include <stdarg.h>
#include <stdint.h>

#include <eplb/export.h>

EPLB_BEGIN_DECLS

typedef enum eplb_status {
    EPLB_OK = 0,
    EPLB_END = 1,                /* an iterator has no more items; not an error */
    EPLB_ERROR_ARGUMENT = -1,    /* a call's argument is outside its documented range */
    EPLB_ERROR_NOMEM = -2,       /* an allocation failed; everything taken was given back */
    EPLB_ERROR_OVERFLOW = -3,    /* a size or a sum does not fit its type */
    EPLB_ERROR_DATA = -4,        /* numbers that cannot be loads, or a map that is not valid */
    EPLB_ERROR_INFEASIBLE = -5,  /* no valid placement exists for what was asked */
    EPLB_ERROR_PARSE = -6,       /* a file is not what its format promises */
    EPLB_ERROR_UNSUPPORTED = -7, /* the format cannot carry it, or this build cannot read it */
    EPLB_ERROR_LIMIT = -8,       /* a file is larger than the reader's limits allow */
    EPLB_ERROR_IO = -9,          /* the operating system refused */
} eplb_status;

/* Room for one line of text. A longer message is cut at the end. */
#define EPLB_ERROR_MESSAGE_SIZE 512

typedef struct eplb_error {
    int32_t status;                        /* an eplb_status */
    char message[EPLB_ERROR_MESSAGE_SIZE]; /* UTF-8, one line, no newline, NUL-terminated */
} eplb_error;

/* A few words for a status, such as "out of memory". A static string, never NULL. */
EPLB_API const char *eplb_status_text(eplb_status status);

/*
 * Fills an error (NULL: does nothing) and returns `status`, so that a caller can write
 * `return eplb_error_set(error, EPLB_ERROR_DATA, "layer %d: ...", layer);`. For code that extends
 * the library: format readers, bindings. Control characters in the text become '?'.
 */
EPLB_API eplb_status eplb_error_set(eplb_error *error, eplb_status status, const char *format, ...)
    EPLB_PRINTF(3, 4);
EPLB_API eplb_status eplb_error_set_va(eplb_error *error, eplb_status status, const char *format,
                                       va_list arguments) EPLB_PRINTF(3, 0);

EPLB_END_DECLS

#endif
