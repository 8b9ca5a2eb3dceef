/* SPDX-License-Identifier: MIT */
#include "format/one_model.h"

#include <stdio.h>

#include "format/display_name.h"

eplb_status eplb_row_width_check(eplb_row_width *width, const char *path, const eplb_format *format,
                                 const eplb_counts_row *row, eplb_error *error)
{
    if (format->counts.short_rows) {
        return EPLB_OK;
    }
    if (width->width == 0) {
        width->width = row->length;
        width->path = path;
    }
    if (row->length != width->width) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: layer %d: %d counts, but %d in %s: not of one model",
                              eplb_display_name_of(path).text, row->layer, row->length,
                              width->width, eplb_display_name_of(width->path).text);
    }
    return EPLB_OK;
}

eplb_status eplb_file_lacks(const char *path, const char *other, int64_t step, const char *what,
                            int64_t number, eplb_error *error)
{
    char place[40] = "";
    if (step >= 0) {
        snprintf(place, sizeof(place), "step %lld: ", (long long)step);
    }
    return eplb_error_set(error, EPLB_ERROR_DATA, "%s: %sno %s %lld, but there is one in %s",
                          eplb_display_name_of(path).text, place, what, (long long)number,
                          eplb_display_name_of(other).text);
}
