/* SPDX-License-Identifier: MIT */
#include "base/memory.h"
#include "format/format.h"

/* What a directory fits is its listing, what a file fits its beginning. */
static eplb_status look_into_directory(const eplb_format *format, const eplb_hooks *hooks,
                                       const char *path, bool *fits, eplb_error *error)
{
    eplb_listing listing;
    eplb_status status = eplb_listing_read(&listing, hooks, path, error);
    if (status == EPLB_OK) {
        *fits = format->counts.probe_directory != NULL && format->counts.probe_directory(&listing);
        eplb_listing_clear(&listing);
    }
    return status;
}

static eplb_status look_into_file(const eplb_format *format, const eplb_hooks *hooks,
                                  const char *path, uint32_t wanted, bool *fits, eplb_error *error)
{
    eplb_reading reading = {.hooks = *hooks, .input = {.hooks = *hooks}};
    eplb_status status = eplb_input_open(&reading.input, hooks, path, error);
    if (status == EPLB_OK) {
        status = eplb_input_need(&reading.input, EPLB_INPUT_PREFIX, error);
    }
    if (status == EPLB_OK) {
        eplb_probe probe = eplb_reading_probe(&reading, wanted);
        *fits = probe.size > 0 && format->probe(&probe);
    }
    eplb_reading_close(&reading);
    return status;
}

eplb_status eplb_format_fits(const eplb_format *format, const eplb_hooks *hooks, const char *path,
                             uint32_t wanted, int32_t *fits, eplb_error *error)
{
    bool counts = wanted == EPLB_FORMAT_READS_COUNTS;
    if (format == NULL || path == NULL || fits == NULL ||
        (!counts && wanted != EPLB_FORMAT_READS_PLACEMENT)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "format: nothing to look at, no output, or neither counts nor "
                              "placements wanted");
    }
    *fits = 0;
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    bool found = false;
    eplb_status status = EPLB_OK;
    if (counts && eplb_is_directory(path)) {
        status = look_into_directory(format, &resolved, path, &found, error);
    } else if (eplb_format_has_files(format, wanted)) {
        status = look_into_file(format, &resolved, path, wanted, &found, error);
    }
    *fits = found ? 1 : 0;
    return status;
}
