/* SPDX-License-Identifier: MIT */
#include "format/vllm_metadata.h"

#include <inttypes.h>

static const char gpus_key[] = "world_size";
static const char layers_key[] = "num_moe_layers";
static const char slots_key[] = "num_physical_experts";
static const char experts_key[] = "num_logical_experts";

/* Reads a number that is not 0, so that a second one is seen. */
static eplb_status read_number(eplb_scanner *scanner, const char *key, int64_t largest,
                               int64_t *number, eplb_error *error)
{
    bool has = *number != 0;
    eplb_status status = eplb_scan_first_time(scanner, &has, key, error);
    if (status == EPLB_OK) {
        status = eplb_scan_integer(scanner, key, largest, number, error);
    }
    return status == EPLB_OK && *number == 0
               ? eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "%s is 0", key)
               : status;
}

static eplb_status read_member(eplb_vllm_metadata *self, eplb_scanner *scanner, const char *key,
                               eplb_error *error)
{
    if (strcmp(key, gpus_key) == 0) {
        return read_number(scanner, key, EPLB_MAX_GPUS, &self->gpus, error);
    }
    if (strcmp(key, layers_key) == 0) {
        return read_number(scanner, key, EPLB_MAX_LAYERS, &self->layers, error);
    }
    if (strcmp(key, slots_key) == 0) {
        return read_number(scanner, key, EPLB_MAX_SLOTS, &self->slots, error);
    }
    return strcmp(key, experts_key) == 0
               ? read_number(scanner, key, EPLB_MAX_EXPERTS, &self->experts, error)
               : eplb_scan_skip(scanner, error);
}

eplb_status eplb_vllm_metadata_read(eplb_vllm_metadata *self, eplb_scanner *scanner,
                                    eplb_error *error)
{
    char key[EPLB_KEY_SIZE];
    bool first = true;
    bool more = true;
    eplb_status status = eplb_scan_expect(scanner, '{', "'{': the metadata", error);
    while (status == EPLB_OK && more) {
        status = eplb_scan_next_key(scanner, &first, key, &more, error);
        if (status == EPLB_OK && more) {
            status = read_member(self, scanner, key, error);
        }
    }
    return status;
}

eplb_status eplb_vllm_metadata_experts(const eplb_vllm_metadata *self, const eplb_scanner *scanner,
                                       const eplb_reading *reading, int32_t *experts,
                                       eplb_error *error)
{
    if (self->experts == 0) {
        return EPLB_OK;
    }
    if (self->experts > reading->options.max_experts) {
        return eplb_scan_fail(scanner, EPLB_ERROR_LIMIT, error, "%s %" PRId64 " not in 1..%d",
                              experts_key, self->experts, reading->options.max_experts);
    }
    if (reading->logical_experts > 0 && self->experts != reading->logical_experts) {
        return eplb_scan_fail(scanner, EPLB_ERROR_DATA, error,
                              "%s is %" PRId64 ", expected %d, the number of experts given",
                              experts_key, self->experts, reading->logical_experts);
    }
    *experts = (int32_t)self->experts;
    return EPLB_OK;
}

static eplb_status check_number(const eplb_scanner *scanner, const char *key, int64_t stated,
                                int32_t found, eplb_error *error)
{
    return stated == 0 || stated == found
               ? EPLB_OK
               : eplb_scan_fail(scanner, EPLB_ERROR_DATA, error,
                                "%d in the snapshots, but %s is %" PRId64, found, key, stated);
}

eplb_status eplb_vllm_metadata_check(const eplb_vllm_metadata *self, const eplb_scanner *scanner,
                                     const eplb_slot_step *step, eplb_error *error)
{
    eplb_status status = check_number(scanner, layers_key, self->layers, step->map.layers, error);
    if (status == EPLB_OK) {
        status = check_number(scanner, slots_key, self->slots, step->map.slots, error);
    }
    if (status == EPLB_OK) {
        status = check_number(scanner, experts_key, self->experts, step->experts, error);
    }
    if (status == EPLB_OK && self->gpus > 0 && step->map.slots % self->gpus != 0) {
        status = eplb_scan_fail(scanner, EPLB_ERROR_DATA, error,
                                "%d slots cannot be spread evenly over a %s of %" PRId64,
                                step->map.slots, gpus_key, self->gpus);
    }
    return status;
}
