/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/memory.h"
#include "format/likeness.h"

/* Who is asked for the number of GPUs comes back with it, and is to be warned then. */
static eplb_status finish(const eplb_map *map, const eplb_read_options *options,
                          const eplb_format *counts, eplb_placement **out, eplb_error *error)
{
    eplb_status status = eplb_map_finish(map, options, out, error);
    if (status != EPLB_ERROR_ARGUMENT) {
        eplb_warn_of_counts(map, counts);
    }
    return status;
}

eplb_status eplb_placement_read(eplb_placement **out, const eplb_hooks *hooks, const char *path,
                                const eplb_read_options *options, const eplb_format **format,
                                eplb_error *error)
{
    if (out == NULL || path == NULL || path[0] == '\0') {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "placement: no output or no path");
    }
    *out = NULL;
    eplb_reading reading;
    const eplb_format *found;
    eplb_status status = eplb_reading_open(&reading, hooks, path, options,
                                           EPLB_FORMAT_READS_PLACEMENT, &found, error);
    if (status != EPLB_OK) {
        return status;
    }
    const eplb_format *counts = eplb_likeness_find(&reading, EPLB_FORMAT_READS_COUNTS);
    eplb_map map = {.hooks = reading.hooks, .name = reading.input.name};
    status = found->placement.read(&reading, &map, error);
    if (status == EPLB_OK) {
        status = finish(&map, &reading.options, counts, out, error);
    }
    eplb_map_clear(&map);
    eplb_reading_close(&reading);
    if (status == EPLB_OK && format != NULL) {
        *format = found;
    }
    return status;
}
