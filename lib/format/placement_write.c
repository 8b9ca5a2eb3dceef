/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include <eplb/file.h>

#include "base/memory.h"
#include "format/format.h"
#include "format/standard_output.h"

/* The first format that can carry GPUs and layers with different numbers of slots. */
static const char *uneven_format(void)
{
    size_t i = 0;
    while ((eplb_format_at(i)->flags & EPLB_FORMAT_UNEVEN_SLOTS) == 0) {
        i++;
    }
    return eplb_format_at(i)->name;
}

/* The first GPU where a layer has not all slots of the cluster; -1: none. */
static int32_t find_closed(const eplb_placement *placement, int32_t layer)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    for (int32_t g = 0; g < eplb_cluster_gpus(cluster); g++) {
        if (eplb_placement_open_slots_on(placement, layer, g) !=
            eplb_cluster_gpu_slots(cluster, g)) {
            return g;
        }
    }
    return -1;
}

static eplb_status check_layers(const eplb_placement *placement, const eplb_format *format,
                                eplb_error *error)
{
    for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
        int32_t gpu = find_closed(placement, l);
        if (gpu >= 0) {
            return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                                  "%s cannot carry layers with different numbers of slots: layer "
                                  "%d has %d of %d on GPU %d; %s can",
                                  format->name, eplb_placement_layer_ids(placement)[l],
                                  eplb_placement_open_slots_on(placement, l, gpu),
                                  eplb_cluster_gpu_slots(eplb_placement_cluster(placement), gpu),
                                  gpu, uneven_format());
        }
    }
    return EPLB_OK;
}

/* What most formats cannot carry: their readers spread the slots evenly over all GPUs. */
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
    if ((format->flags & EPLB_FORMAT_UNEVEN_SLOTS) != 0) {
        return EPLB_OK;
    }
    eplb_status status = check_layers(placement, format, error);
    if (status == EPLB_OK && eplb_cluster_uniform_slots(cluster) == 0) {
        status = eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                                "%s cannot carry GPUs with different numbers of slots; %s can",
                                format->name, uneven_format());
    }
    return status;
}

/* The first format that can mark a layer as the draft model's. */
static const char *drafting_format(void)
{
    size_t i = 0;
    while (eplb_format_at(i)->placement.draft_layers == 0) {
        i++;
    }
    return eplb_format_at(i)->name;
}

/* What cannot be marked would be read as a layer of the model. */
static eplb_status check_draft_layers(const eplb_placement *placement, const eplb_format *format,
                                      eplb_error *error)
{
    int32_t count = eplb_placement_draft_layers(placement);
    int32_t most = format->placement.draft_layers;
    if (count <= most) {
        return EPLB_OK;
    }
    char reason[80];
    if (most > 0) {
        snprintf(reason, sizeof(reason), "at most %d", most);
    } else {
        snprintf(reason, sizeof(reason), "it cannot say which they are; %s can", drafting_format());
    }
    return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                          "%s cannot carry layers of the draft model (%d, the last of %d): %s",
                          format->name, count, eplb_placement_layers(placement), reason);
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
    if (status == EPLB_OK) {
        status = check_draft_layers(placement, format, error);
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
    status = strcmp(path, "-") == 0 ? eplb_write_standard_output(text, length, error)
                                    : eplb_file_write(&resolved, path, text, length, error);
    eplb_free(&resolved, text);
    return status;
}
