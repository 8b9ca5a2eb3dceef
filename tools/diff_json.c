/* SPDX-License-Identifier: MIT */
/* A difference as one JSON document, schema eplb.diff/1. */
#include "diff.h"
#include "message.h"
#include "output.h"

static void add_shape(cJSON *document, const diff_report *self)
{
    json_add_text(document, "old", self->old_path);
    json_add_text(document, "new", self->new_path);
    json_add_integer(document, "layers", self->layers);
    json_add_integer(document, "draft_layers", eplb_placement_draft_layers(self->maps->new_map));
    json_add_integer(document, "experts", self->experts);
    json_add_integer(document, "gpus", self->gpus);
    json_add_integer(document, "slots_before", self->old_slots);
    json_add_integer(document, "slots_after", self->new_slots);
}

static void add_results(cJSON *document, const diff_report *self)
{
    bool scored = self->scored_layers > 0;
    json_add_integer(document, "layers_changed", self->changed_layers);
    json_add_integer(document, "layers_with_copies", self->copied_layers);
    json_add_integer(document, "copies", self->copies);
    json_add_known_integer(document, "bytes_to_copy", self->bytes >= 0, self->bytes);
    if (self->has_load) {
        json_add_summary(document, "imbalance_before", scored, &self->before);
        json_add_summary(document, "imbalance_after", scored, &self->after);
    } else {
        cJSON_AddNullToObject(document, "imbalance_before");
        cJSON_AddNullToObject(document, "imbalance_after");
    }
    json_add_payoff(document, "payoff", &self->terms, scored ? &self->payoff : NULL);
}

static void add_gpus(cJSON *document, const diff_report *self)
{
    cJSON *list = cJSON_AddArrayToObject(document, "per_gpu");
    for (int32_t g = 0; g < self->gpus; g++) {
        const eplb_gpu_copies *traffic = &self->traffic[g];
        cJSON *object = cJSON_CreateObject();
        json_add_integer(object, "gpu", g);
        json_add_integer(object, "received", traffic->received_intra + traffic->received_inter);
        json_add_integer(object, "sent", traffic->sent_intra + traffic->sent_inter);
        json_add_known_integer(object, "received_between_nodes", self->has_nodes,
                               traffic->received_inter);
        json_add_known_integer(object, "sent_between_nodes", self->has_nodes, traffic->sent_inter);
        cJSON_AddItemToArray(list, object);
    }
}

static bool gpu_holds(const eplb_placement *placement, int32_t layer, int32_t gpu, int32_t expert)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    const int32_t *row =
        eplb_placement_row(placement, layer) + eplb_cluster_first_slot(cluster, gpu);
    for (int32_t s = 0; s < eplb_cluster_gpu_slots(cluster, gpu); s++) {
        if (row[s] == expert) {
            return true;
        }
    }
    return false;
}

/* The experts of a GPU that it does not have in another placement. */
static cJSON *list_new(const eplb_placement *placement, const eplb_placement *other, int32_t layer,
                       int32_t gpu)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    const int32_t *row =
        eplb_placement_row(placement, layer) + eplb_cluster_first_slot(cluster, gpu);
    cJSON *list = cJSON_CreateArray();
    for (int32_t s = 0; s < eplb_cluster_gpu_slots(cluster, gpu); s++) {
        if (row[s] >= 0 && !gpu_holds(other, layer, gpu, row[s])) {
            cJSON_AddItemToArray(list, cJSON_CreateNumber(row[s]));
        }
    }
    return list;
}

/* What GPUs get and give up in a layer; those that change nothing are left out. */
static void add_changes(cJSON *object, const diff_report *self, int32_t layer)
{
    const diff_maps *maps = self->maps;
    cJSON *list = cJSON_AddArrayToObject(object, "gpus");
    for (int32_t g = 0; g < self->gpus; g++) {
        cJSON *gained = list_new(maps->new_map, maps->old_map, layer, g);
        cJSON *lost = list_new(maps->old_map, maps->new_map, layer, g);
        if (cJSON_GetArraySize(gained) + cJSON_GetArraySize(lost) == 0) {
            cJSON_Delete(gained);
            cJSON_Delete(lost);
            continue;
        }
        cJSON *gpu = cJSON_CreateObject();
        json_add_integer(gpu, "gpu", g);
        cJSON_AddItemToObject(gpu, "gained", gained);
        cJSON_AddItemToObject(gpu, "lost", lost);
        cJSON_AddItemToArray(list, gpu);
    }
}

/* Experts whose number of replicas differs. */
static void add_replica_changes(cJSON *object, const diff_report *self, int32_t layer)
{
    const int32_t *before = self->counts + 2 * (size_t)layer * (size_t)self->experts;
    const int32_t *after = before + self->experts;
    cJSON *list = cJSON_AddArrayToObject(object, "replica_changes");
    for (int32_t e = 0; e < self->experts; e++) {
        if (before[e] != after[e]) {
            cJSON *change = cJSON_CreateObject();
            json_add_integer(change, "expert", e);
            json_add_integer(change, "before", before[e]);
            json_add_integer(change, "after", after[e]);
            cJSON_AddItemToArray(list, change);
        }
    }
}

static void add_layers(cJSON *document, const diff_report *self)
{
    cJSON *list = cJSON_AddArrayToObject(document, "per_layer");
    for (int32_t l = 0; l < self->layers; l++) {
        const diff_row *row = &self->rows[l];
        cJSON *object = cJSON_CreateObject();
        json_add_integer(object, "layer", row->layer_id);
        json_add_integer(object, "copies", row->copies);
        json_add_integer(object, "slots_changed", row->changed_slots);
        json_add_integer(object, "replicas_gained", row->gained);
        json_add_integer(object, "replicas_lost", row->lost);
        json_add_number(object, "imbalance_before", row->scored, row->before);
        json_add_number(object, "imbalance_after", row->scored, row->after);
        add_replica_changes(object, self, l);
        add_changes(object, self, l);
        cJSON_AddItemToArray(list, object);
    }
}

static cJSON *describe_copy(const eplb_copy *copy)
{
    cJSON *object = cJSON_CreateObject();
    json_add_integer(object, "expert", copy->expert);
    json_add_integer(object, "gpu", copy->gpu);
    json_add_integer(object, "slot", copy->slot);
    json_add_known_integer(object, "buffer", copy->buffer >= 0, copy->buffer);
    cJSON_AddStringToObject(object, "source",
                            eplb_copy_source_name((eplb_copy_source)copy->source));
    json_add_known_integer(object, "source_gpu", copy->source_gpu >= 0, copy->source_gpu);
    json_add_known_integer(object, "source_slot", copy->source_slot >= 0, copy->source_slot);
    return object;
}

static void add_rounds(cJSON *schedule, const diff_report *self)
{
    const int32_t *ids = eplb_placement_layer_ids(self->maps->new_map);
    cJSON *list = cJSON_AddArrayToObject(schedule, "per_round");
    for (int64_t r = 0; r < self->schedule.rounds; r++) {
        eplb_round round = {.struct_size = sizeof(round)};
        if (eplb_migration_get_round(self->migration, r, &round, NULL) != EPLB_OK) {
            return; /* there is no such round */
        }
        cJSON *object = cJSON_CreateObject();
        json_add_integer(object, "layer", ids[round.layer]);
        cJSON_AddBoolToObject(object, "commit", round.commit != 0);
        cJSON *copies = cJSON_AddArrayToObject(object, "copies");
        for (int32_t i = 0; i < round.copy_count; i++) {
            cJSON_AddItemToArray(copies, describe_copy(&round.copies[i]));
        }
        cJSON_AddItemToArray(list, object);
    }
}

static void add_schedule(cJSON *document, const diff_report *self)
{
    const eplb_migration_info *info = &self->schedule;
    cJSON *object = cJSON_AddObjectToObject(document, "schedule");
    cJSON_AddStringToObject(object, "mode", diff_modes[self->mode]);
    json_add_integer(object, "rounds", info->rounds);
    json_add_integer(object, "buffer_slots", info->buffer_slots);
    json_add_integer(object, "local_copies", info->local_copies);
    json_add_integer(object, "node_copies", info->node_copies);
    json_add_integer(object, "remote_copies", info->remote_copies);
    json_add_integer(object, "storage_copies", info->storage_copies);
    json_add_integer(object, "extra_copies", self->extra);
    json_add_integer(object, "most_sent", info->most_sent);
    json_add_integer(object, "most_received", info->most_received);
    add_rounds(object, self);
}

int diff_report_print_json(const diff_report *self)
{
    cJSON *document = json_begin("eplb.diff/1");
    add_shape(document, self);
    add_results(document, self);
    add_gpus(document, self);
    add_layers(document, self);
    add_schedule(document, self);
    return json_finish(document, EXIT_DONE);
}
