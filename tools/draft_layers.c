/* SPDX-License-Identifier: MIT */
#include "draft_layers.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include <eplb/format.h>

/* Whether the content is of a format that can say it; others may be long recordings. */
static bool may_say(const char *path)
{
    int32_t fits = 0;
    const eplb_format *format;
    for (size_t i = 0; fits == 0 && (format = eplb_format_at(i)) != NULL; i++) {
        if (eplb_format_draft_layers(format) > 0 &&
            eplb_format_fits(format, NULL, path, EPLB_FORMAT_READS_PLACEMENT, &fits, NULL) !=
                EPLB_OK) {
            return false;
        }
    }
    return fits != 0;
}

int32_t draft_layers_of(const char *path)
{
    struct stat status;
    if (path == NULL || stat(path, &status) != 0 || !S_ISREG(status.st_mode) || !may_say(path)) {
        return -1;
    }
    eplb_placement *placement;
    const eplb_format *format;
    if (eplb_placement_read(&placement, NULL, path, NULL, &format, NULL) != EPLB_OK) {
        return -1;
    }
    int32_t count =
        eplb_format_draft_layers(format) > 0 ? eplb_placement_draft_layers(placement) : -1;
    eplb_placement_destroy(&placement);
    return count;
}

eplb_status check_draft_layers(int32_t count, const int32_t *ids, int32_t layers,
                               int32_t model_layers, const char *path, eplb_error *error)
{
    if (count >= layers) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%.300s: %" PRId32 " layers, of which %" PRId32
                              " would be the draft model's: at least one is the model's",
                              path, layers, count);
    }
    int32_t last = ids[layers - 1];
    if (count > 0 && model_layers > 0 && last != model_layers - 1) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%.300s: layer %" PRId32 " is the last one with experts of layers 0 "
                              "to %" PRId32 ", so it is not the draft model's",
                              path, last, model_layers - 1);
    }
    return EPLB_OK;
}

char *draft_layers_text(int32_t count, char *text, size_t size)
{
    snprintf(text, size, " (%" PRId32 " of the draft model)", count);
    text[0] = count > 0 ? text[0] : '\0';
    return text;
}
