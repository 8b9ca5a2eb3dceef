/* SPDX-License-Identifier: MIT */
/* TensorRT-LLM's placement: YAML with the experts of all slots of each MoE layer, by model layer
 * id. It is written as text; only reading it needs libyaml (see trtllm_yaml.c). Its counts are
 * safetensors (trtllm_counts.c). */
#include <string.h>

#include "format/format.h"
#include "format/trtllm_counts.h"
#include "format/trtllm_yaml.h"

#ifdef EPLB_HAVE_YAML
#define READS_PLACEMENT EPLB_FORMAT_READS_PLACEMENT
#else
#define READS_PLACEMENT 0u
#endif

/* The engine's own limits. */
#define MAX_EXPERTS 1024
#define MAX_SLOTS 65536

/* One of the keys begins a line. */
static bool probe_placement(const eplb_probe *probe)
{
    static const char *const keys[] = {
        "num_slots:", "layer_updates_per_iter:", "initial_global_assignments:"};
    const char *end = probe->data + probe->size;
    const char *line = probe->data;
    while (line != NULL && line < end) {
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
            if (strncmp(line, keys[i], strlen(keys[i])) == 0) {
                return true;
            }
        }
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        line = newline != NULL ? newline + 1 : NULL;
    }
    return false;
}

static bool probe(const eplb_probe *probe)
{
    return probe->wanted == EPLB_FORMAT_READS_COUNTS ? eplb_trtllm_probe_counts(probe)
                                                     : probe_placement(probe);
}

static eplb_status check_limits(const eplb_placement *placement, eplb_error *error)
{
    int32_t experts = eplb_placement_experts(placement);
    int32_t slots = eplb_placement_slots(placement);
    if (experts > MAX_EXPERTS || slots > MAX_SLOTS) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "trtllm cannot carry %d experts in %d slots: at most %d and %d",
                              experts, slots, MAX_EXPERTS, MAX_SLOTS);
    }
    return EPLB_OK;
}

static eplb_status write_placement(const eplb_placement *placement, eplb_text *text,
                                   eplb_error *error)
{
    eplb_status status = check_limits(placement, error);
    if (status != EPLB_OK) {
        return status;
    }
    const int32_t *ids = eplb_placement_layer_ids(placement);
    int32_t slots = eplb_placement_slots(placement);
    eplb_text_add(text, "num_slots: ");
    eplb_text_add_integer(text, slots);
    eplb_text_add(text, "\nlayer_updates_per_iter: 0\ninitial_global_assignments:\n");
    for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
        eplb_text_add(text, "  ");
        eplb_text_add_integer(text, ids[l]);
        eplb_text_add(text, ": [");
        eplb_text_add_list(text, eplb_placement_row(placement, l), slots, ", ");
        eplb_text_add(text, "]\n");
    }
    return EPLB_OK;
}

const eplb_format eplb_format_trtllm = {
    .name = "trtllm",
    .description = "TensorRT-LLM: counts of its ranks, safetensors; initial_global_assignments of "
                   "its load balancer, YAML",
    .flags = EPLB_FORMAT_READS_COUNTS | READS_PLACEMENT | EPLB_FORMAT_WRITES_PLACEMENT |
             EPLB_FORMAT_MODEL_LAYER_IDS,
    .probe = probe,
    .counts = {.open = eplb_trtllm_open_counts,
               .next = eplb_trtllm_next_counts,
               .close = eplb_trtllm_close_counts,
               .probe_directory = eplb_trtllm_probe_directory},
    .placement = {.read = eplb_trtllm_read, .write = write_placement},
};
