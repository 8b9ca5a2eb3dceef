/* SPDX-License-Identifier: MIT */
#include "format/one_model.h"

#include <stdio.h>

#include "format/display_name.h"

/* Short rows may end before the last expert of full ones, but not behind it. */
static eplb_status check_longest(const eplb_row_width *width, const char *path,
                                 const eplb_counts_row *row, bool is_short, eplb_error *error)
{
    if (width->width == 0 || width->longest <= width->width) {
        return EPLB_OK;
    }
    eplb_display_name name = eplb_display_name_of(path);
    eplb_display_name other = eplb_display_name_of(is_short ? width->path : width->longest_path);
    return is_short
               ? eplb_error_set(error, EPLB_ERROR_DATA,
                                "%s: layer %d: expert %d, but %d counts in %s: not of one "
                                "model",
                                name.text, row->layer, row->length - 1, width->width, other.text)
               : eplb_error_set(error, EPLB_ERROR_DATA,
                                "%s: layer %d: %d counts, but expert %d in %s: not of one "
                                "model",
                                name.text, row->layer, row->length, width->longest - 1, other.text);
}

eplb_status eplb_row_width_check(eplb_row_width *width, const char *path, const eplb_format *format,
                                 const eplb_counts_row *row, eplb_error *error)
{
    bool is_short = format->counts.short_rows;
    if (is_short && row->length > width->longest) {
        width->longest = row->length;
        width->longest_path = path;
    }
    if (!is_short && width->width == 0) {
        width->width = row->length;
        width->path = path;
    }
    if (!is_short && row->length != width->width) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: layer %d: %d counts, but %d in %s: not of one model",
                              eplb_display_name_of(path).text, row->layer, row->length,
                              width->width, eplb_display_name_of(width->path).text);
    }
    return check_longest(width, path, row, is_short, error);
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
