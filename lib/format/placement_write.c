/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <eplb/file.h>

#include "base/memory.h"
#include "format/format.h"

/* What no format here can carry: its reader would spread the slots evenly over all GPUs. */
static eplb_status check_even(const eplb_placement *placement, const eplb_format *format,
                              eplb_error *error)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    int32_t dead = eplb_cluster_gpus(cluster) - eplb_cluster_live_gpus(cluster);
    if (dead > 0) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s cannot carry dead GPUs: %d of %d are dead", format->name, dead,
                              eplb_cluster_gpus(cluster));
    }
    if (eplb_cluster_uniform_slots(cluster) == 0) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s cannot carry GPUs with different numbers of slots", format->name);
    }
    return EPLB_OK;
}

eplb_status eplb_placement_format(const eplb_placement *placement, const eplb_hooks *hooks,
                                  const eplb_format *format, char **text, size_t *length,
                                  eplb_error *error)
{
    if (placement == NULL || format == NULL || text == NULL || length == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "placement: nothing to write, no format or no output");
    }
    *text = NULL;
    *length = 0;
    if ((format->flags & EPLB_FORMAT_WRITES_PLACEMENT) == 0) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED, "%s has no placements to be written",
                              format->name);
    }
    eplb_status status = eplb_placement_validate(placement, 0, error);
    if (status == EPLB_OK) {
        status = check_even(placement, format, error);
    }
    eplb_text rendered = {.hooks = eplb_hooks_resolve(hooks)};
    if (status == EPLB_OK) {
        status = format->placement.write(placement, &rendered, error);
    }
    if (status == EPLB_OK && rendered.failed) {
        status = eplb_out_of_memory(error);
    }
    if (status != EPLB_OK) {
        eplb_text_clear(&rendered);
        return status;
    }
    *text = rendered.bytes;
    *length = rendered.length;
    return EPLB_OK;
}

static eplb_status write_standard_output(const char *text, size_t length, eplb_error *error)
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

eplb_status eplb_placement_write(const eplb_placement *placement, const eplb_hooks *hooks,
                                 const char *path, const eplb_format *format, eplb_error *error)
{
    if (path == NULL || path[0] == '\0') {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "placement: no path to write to");
    }
    char *text;
    size_t length;
    eplb_status status = eplb_placement_format(placement, hooks, format, &text, &length, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    status = strcmp(path, "-") == 0 ? write_standard_output(text, length, error)
                                    : eplb_file_write(&resolved, path, text, length, error);
    eplb_free(&resolved, text);
    return status;
}
