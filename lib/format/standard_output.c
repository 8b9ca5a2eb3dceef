/* SPDX-License-Identifier: MIT */
#include "format/standard_output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

eplb_status eplb_write_standard_output(const char *text, size_t length, eplb_error *error)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, text, length);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return eplb_error_set(error, EPLB_ERROR_IO, "standard output: cannot write: %s",
                                  strerror(errno));
        }
        text += written;
        length -= (size_t)written;
    }
    return EPLB_OK;
}
