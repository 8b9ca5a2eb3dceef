/* SPDX-License-Identifier: MIT */
#include <eplb/migration.h>

#include "base/range.h"
#include "migration/transfer.h"
#include "model/cluster.h"
#include "model/placement.h"

static const char what[] = "migration";

void eplb_migration_options_init(eplb_migration_options *options)
{
    *options = (eplb_migration_options){.struct_size = sizeof(*options),
                                        .mode = EPLB_MIGRATION_IN_PLACE,
                                        .max_sends = -1,
                                        .max_receives = -1,
                                        .max_copies = -1,
                                        .buffer_slots = 1};
}

const char *eplb_copy_source_name(eplb_copy_source source)
{
    switch (source) {
    case EPLB_COPY_LOCAL:
        return "local";
    case EPLB_COPY_NODE:
        return "node";
    case EPLB_COPY_REMOTE:
        return "remote";
    case EPLB_COPY_STORAGE:
        return "storage";
    }
    return "unknown";
}

static eplb_status check_limit(const char *name, int32_t value, int32_t least, eplb_error *error)
{
    return value == -1 ? EPLB_OK : eplb_check_range(what, name, value, least, INT32_MAX, error);
}

static eplb_status read_options(eplb_migration_options *own, const eplb_migration_options *options,
                                eplb_error *error)
{
    eplb_migration_options_init(own);
    if (options != NULL && !eplb_struct_in(own, sizeof(*own), options)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "migration: options without struct_size");
    }
    eplb_status status = eplb_check_range(what, "mode", own->mode, EPLB_MIGRATION_IN_PLACE,
                                          EPLB_MIGRATION_STAGED, error);
    if (status == EPLB_OK) {
        status = check_limit("max_sends", own->max_sends, 1, error);
    }
    if (status == EPLB_OK) {
        status = check_limit("max_receives", own->max_receives, 1, error);
    }
    if (status == EPLB_OK) {
        status = check_limit("max_copies", own->max_copies, 1, error);
    }
    return status == EPLB_OK ? check_limit("buffer_slots", own->buffer_slots,
                                           own->mode == EPLB_MIGRATION_STAGED ? 1 : 0, error)
                             : status;
}

static eplb_status check_layer_ids(const eplb_placement *from, const eplb_placement *to,
                                   eplb_error *error)
{
    for (int32_t l = 0; l < to->layers; l++) {
        if (from->layer_ids.ids[l] != to->layer_ids.ids[l]) {
            return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                  "migration: layer with index %d is %d in the old placement, %d "
                                  "in the new",
                                  l, from->layer_ids.ids[l], to->layer_ids.ids[l]);
        }
    }
    return EPLB_OK;
}

static eplb_status check_match(const eplb_placement *from, const eplb_placement *to,
                               eplb_error *error)
{
    eplb_status status = eplb_check_given(what, "old placement", from, error);
    if (status == EPLB_OK) {
        status = eplb_check_given(what, "new placement", to, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    if (from->layers != to->layers || from->experts != to->experts ||
        from->cluster->gpus != to->cluster->gpus) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "migration: from %d layers of %d experts on %d GPUs to %d layers of "
                              "%d experts on %d GPUs",
                              from->layers, from->experts, from->cluster->gpus, to->layers,
                              to->experts, to->cluster->gpus);
    }
    if (from->draft_layers != to->draft_layers) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "migration: the draft model has %d of the layers in the old "
                              "placement, %d in the new",
                              from->draft_layers, to->draft_layers);
    }
    status = check_layer_ids(from, to, error);
    return status == EPLB_OK
               ? eplb_placement_validate(
                     to, EPLB_VALIDATE_ALLOW_EMPTY | EPLB_VALIDATE_ALLOW_DUPLICATES, error)
               : status;
}

/* On each GPU as many slots as either placement has. */
static eplb_status make_cluster(eplb_migration *migration, const eplb_placement *from,
                                const eplb_placement *to, eplb_error *error)
{
    int32_t gpus = to->cluster->gpus;
    int32_t *slots = eplb_alloc(&migration->hooks, (size_t)gpus, sizeof(*slots));
    if (slots == NULL) {
        return eplb_out_of_memory(error);
    }
    for (int32_t g = 0; g < gpus; g++) {
        int32_t old = from->cluster->gpu[g].slots;
        int32_t new = to->cluster->gpu[g].slots;
        slots[g] = old > new ? old : new;
    }
    eplb_status status = eplb_cluster_clone_with_slots(&migration->cluster, &migration->hooks,
                                                       to->cluster, slots, error);
    eplb_free(&migration->hooks, slots);
    return status;
}

static eplb_status make_arrays(eplb_migration *migration, const eplb_placement *from,
                               const eplb_placement *to, eplb_error *error)
{
    eplb_status status = make_cluster(migration, from, to, error);
    if (status != EPLB_OK) {
        return status;
    }
    migration->layers = to->layers;
    migration->experts = to->experts;
    migration->slots = eplb_cluster_slots(migration->cluster);
    const eplb_array arrays[] = {
        EPLB_ARRAY(migration->first_round, (size_t)to->layers + 1),
        EPLB_ARRAY(migration->start, (size_t)to->layers),
    };
    return eplb_alloc_arrays(&migration->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

static eplb_status make_rounds(eplb_migration *migration, const eplb_placement *from,
                               const eplb_placement *to, eplb_error *error)
{
    eplb_transfer transfer;
    eplb_status status = eplb_transfer_init(&transfer, migration, from, to, error);
    for (int32_t l = 0; l < migration->layers && status == EPLB_OK; l++) {
        status = eplb_transfer_layer(&transfer, l, error);
    }
    eplb_transfer_free(&transfer);
    migration->first_round[migration->layers] = migration->round_count;
    return status == EPLB_OK ? eplb_migration_count(migration, error) : status;
}

eplb_status eplb_migration_create(eplb_migration **out, const eplb_hooks *hooks,
                                  const eplb_placement *from, const eplb_placement *to,
                                  const eplb_migration_options *options, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    eplb_migration_options own;
    eplb_status status = eplb_check_given(what, "output", out, error);
    if (status == EPLB_OK) {
        status = read_options(&own, options, error);
    }
    if (status == EPLB_OK) {
        status = check_match(from, to, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_migration *migration = eplb_alloc_zeroed(&resolved, 1, sizeof(*migration));
    if (migration == NULL) {
        return eplb_out_of_memory(error);
    }
    migration->hooks = resolved;
    migration->options = own;
    status = make_arrays(migration, from, to, error);
    if (status == EPLB_OK) {
        status = make_rounds(migration, from, to, error);
    }
    if (status != EPLB_OK) {
        eplb_migration_destroy(&migration);
        return status;
    }
    *out = migration;
    return EPLB_OK;
}

void eplb_migration_destroy(eplb_migration **migration)
{
    if (migration == NULL || *migration == NULL) {
        return;
    }
    eplb_migration *self = *migration;
    eplb_hooks hooks = self->hooks;
    eplb_cluster_destroy(&self->cluster);
    eplb_free(&hooks, self->copies);
    eplb_free(&hooks, self->rounds);
    eplb_free(&hooks, self->maps);
    eplb_free(&hooks, self->first_round);
    eplb_free(&hooks, self->start);
    eplb_free(&hooks, self);
    *migration = NULL;
}

const eplb_cluster *eplb_migration_cluster(const eplb_migration *migration)
{
    return migration->cluster;
}

int32_t eplb_migration_slots(const eplb_migration *migration)
{
    return migration->slots;
}

int64_t eplb_migration_rounds(const eplb_migration *migration)
{
    return (int64_t)migration->round_count;
}

eplb_status eplb_migration_layer_rounds(const eplb_migration *migration, int32_t layer,
                                        int64_t *first, int64_t *count, eplb_error *error)
{
    eplb_status status = eplb_check_range(what, "layer", layer, 0, migration->layers - 1, error);
    if (status == EPLB_OK) {
        *first = (int64_t)migration->first_round[layer];
        *count = (int64_t)(migration->first_round[layer + 1] - migration->first_round[layer]);
    }
    return status;
}

const int32_t *eplb_migration_start_map(const eplb_migration *migration, int32_t layer)
{
    bool exists = layer >= 0 && layer < migration->layers;
    return exists ? eplb_migration_map(migration, migration->start[layer]) : NULL;
}

/* A caller's struct whose struct_size was never set takes nothing. */
static eplb_status check_result(const uint32_t *struct_size, eplb_error *error)
{
    eplb_status status = eplb_check_given(what, "output", struct_size, error);
    return status == EPLB_OK ? eplb_check_range(what, "struct_size", *struct_size,
                                                sizeof(*struct_size), UINT32_MAX, error)
                             : status;
}

eplb_status eplb_migration_get_round(const eplb_migration *migration, int64_t index,
                                     eplb_round *round, eplb_error *error)
{
    eplb_status status =
        eplb_check_range(what, "round", index, 0, (int64_t)migration->round_count - 1, error);
    if (status == EPLB_OK) {
        status = check_result((const uint32_t *)round, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    const eplb_round_record *record = &migration->rounds[index];
    eplb_round own = {.struct_size = sizeof(own),
                      .layer = record->layer,
                      .commit = record->commit,
                      .copy_count = record->copy_count,
                      .copies = eplb_migration_copies(migration, record),
                      .map_during = eplb_migration_map(migration, record->during),
                      .map_after = eplb_migration_map(migration, record->after)};
    eplb_struct_out(round, &own, sizeof(own));
    return EPLB_OK;
}

eplb_status eplb_migration_get_info(const eplb_migration *migration, eplb_migration_info *info,
                                    eplb_error *error)
{
    eplb_status status = check_result((const uint32_t *)info, error);
    if (status == EPLB_OK) {
        eplb_struct_out(info, &migration->info, sizeof(migration->info));
    }
    return status;
}
