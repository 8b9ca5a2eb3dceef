/* SPDX-License-Identifier: MIT */
#include "pins.h"

#include <stdlib.h>
#include <string.h>

/* Reads digits, or "all" as -1 where that is allowed, up to ':' or the end; NULL: neither. */
static const char *parse_part(const char *text, bool may_be_all, int32_t *number)
{
    const char *end = text + strcspn(text, ":");
    if (may_be_all && end - text == 3 && memcmp(text, "all", 3) == 0) {
        *number = -1;
        return end;
    }
    if (end == text || end - text > 9 || strspn(text, "0123456789") != (size_t)(end - text)) {
        return NULL;
    }
    *number = (int32_t)strtol(text, NULL, 10);
    return end;
}

bool parse_pin(const char *text, pin_text *pin)
{
    const char *end = parse_part(text, true, &pin->layer_id);
    if (end == NULL || *end != ':') {
        return false;
    }
    end = parse_part(end + 1, false, &pin->expert);
    if (end == NULL || *end != ':') {
        return false;
    }
    end = parse_part(end + 1, true, &pin->gpu);
    return end != NULL && *end == '\0';
}

/* The index of a layer; -1: the load does not have it. */
static int32_t find_layer(const eplb_load *load, int32_t id)
{
    for (int32_t l = 0; l < eplb_load_layers(load); l++) {
        if (eplb_load_layer_ids(load)[l] == id) {
            return l;
        }
    }
    return -1;
}

static eplb_status resolve(const char *text, const eplb_load *load, int32_t gpus, eplb_pin *pin,
                           eplb_error *error)
{
    pin_text parsed;
    if (!parse_pin(text, &parsed)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "--pin '%s': not LAYER:EXPERT:GPU", text);
    }
    int32_t layer = parsed.layer_id >= 0 ? find_layer(load, parsed.layer_id) : -1;
    int32_t last = eplb_load_layers(load) - 1;
    if (parsed.layer_id >= 0 && layer < 0) {
        return eplb_error_set(
            error, EPLB_ERROR_DATA, "--pin '%s': the loads have no layer %d, but %d to %d", text,
            parsed.layer_id, eplb_load_layer_ids(load)[0], eplb_load_layer_ids(load)[last]);
    }
    if (parsed.expert >= eplb_load_experts(load)) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "--pin '%s': there is no expert %d of %d",
                              text, parsed.expert, eplb_load_experts(load));
    }
    if (parsed.gpu >= gpus) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "--pin '%s': there is no GPU %d of %d", text,
                              parsed.gpu, gpus);
    }
    *pin = (eplb_pin){.layer = layer, .expert = parsed.expert, .gpu = parsed.gpu};
    return EPLB_OK;
}

eplb_status make_pins(eplb_pin **pins, const text_list *texts, const eplb_load *load, int32_t gpus,
                      eplb_error *error)
{
    *pins = NULL;
    if (texts->count == 0) {
        return EPLB_OK;
    }
    *pins = calloc((size_t)texts->count, sizeof(**pins));
    if (*pins == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    eplb_status status = EPLB_OK;
    for (int32_t i = 0; i < texts->count && status == EPLB_OK; i++) {
        status = resolve(texts->items[i], load, gpus, &(*pins)[i], error);
    }
    return status;
}
