/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "diff.h"
#include "memory.h"

static eplb_status count_replicas(const diff_report *self, int32_t layer, diff_row *row,
                                  eplb_error *error)
{
    int32_t *before = self->counts + 2 * (size_t)layer * (size_t)self->experts;
    int32_t *after = before + self->experts;
    eplb_status status = eplb_placement_replica_counts(self->maps->old_map, layer, before, error);
    if (status == EPLB_OK) {
        status = eplb_placement_replica_counts(self->maps->new_map, layer, after, error);
    }
    for (int32_t e = 0; e < self->experts && status == EPLB_OK; e++) {
        int32_t change = after[e] - before[e];
        row->more += change > 0 ? 1 : 0;
        row->fewer += change < 0 ? 1 : 0;
        row->gained += change > 0 ? change : 0;
        row->lost += change < 0 ? -change : 0;
    }
    return status;
}

/* Slots that hold something else; those that only one of the maps has count. */
static int32_t count_changed_slots(const diff_maps *maps, int32_t layer)
{
    const eplb_cluster *before = eplb_placement_cluster(maps->old_map);
    const eplb_cluster *after = eplb_placement_cluster(maps->new_map);
    const int32_t *old_row = eplb_placement_row(maps->old_map, layer);
    const int32_t *new_row = eplb_placement_row(maps->new_map, layer);
    int32_t changed = 0;
    for (int32_t g = 0; g < eplb_cluster_gpus(after); g++) {
        int32_t old_slots = eplb_placement_open_slots_on(maps->old_map, layer, g);
        int32_t new_slots = eplb_placement_open_slots_on(maps->new_map, layer, g);
        int32_t both = old_slots < new_slots ? old_slots : new_slots;
        const int32_t *old_gpu = old_row + eplb_cluster_first_slot(before, g);
        const int32_t *new_gpu = new_row + eplb_cluster_first_slot(after, g);
        for (int32_t s = 0; s < both; s++) {
            changed += old_gpu[s] != new_gpu[s] ? 1 : 0;
        }
        changed += old_slots + new_slots - 2 * both;
    }
    return changed;
}

static eplb_status score(const diff_subject *subject, int32_t layer, diff_row *row,
                         eplb_error *error)
{
    if (subject->load == NULL || eplb_load_layer_is_zero(subject->load, layer)) {
        return EPLB_OK;
    }
    row->scored = true;
    eplb_status status = eplb_placement_objective(subject->maps->old_map, layer, subject->load,
                                                  layer, subject->objective, &row->before, error);
    return status == EPLB_OK
               ? eplb_placement_objective(subject->maps->new_map, layer, subject->load, layer,
                                          subject->objective, &row->after, error)
               : status;
}

static eplb_status measure_row(diff_report *self, const diff_subject *subject, int32_t layer,
                               eplb_error *error)
{
    diff_row *row = &self->rows[layer];
    const diff_maps *maps = self->maps;
    row->layer_id = eplb_placement_layer_ids(maps->new_map)[layer];
    row->changed_slots = count_changed_slots(maps, layer);
    eplb_status status = count_replicas(self, layer, row, error);
    if (status == EPLB_OK) {
        status = eplb_placement_copies(maps->old_map, maps->new_map, layer, &row->copies, error);
    }
    return status == EPLB_OK ? score(subject, layer, row, error) : status;
}

static eplb_status measure_rows(diff_report *self, const diff_subject *subject, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < self->layers && status == EPLB_OK; l++) {
        status = measure_row(self, subject, l, error);
    }
    return status;
}

static void summarise(diff_report *self)
{
    for (int32_t l = 0; l < self->layers; l++) {
        const diff_row *row = &self->rows[l];
        self->copies += row->copies;
        self->copied_layers += row->copies > 0 ? 1 : 0;
        self->changed_layers += row->changed_slots > 0 ? 1 : 0;
        if (row->scored) {
            self->scored_layers++;
            summary_add(&self->before, row->before);
            summary_add(&self->after, row->after);
        }
    }
    summary_finish(&self->before, self->scored_layers);
    summary_finish(&self->after, self->scored_layers);
}

static eplb_status make_schedule(diff_report *self, const diff_subject *subject, eplb_error *error)
{
    self->schedule.struct_size = sizeof(self->schedule);
    eplb_status status = eplb_migration_create(&self->migration, NULL, self->maps->old_map,
                                               self->maps->new_map, &subject->migration, error);
    if (status == EPLB_OK) {
        status = eplb_migration_get_info(self->migration, &self->schedule, error);
    }
    if (status == EPLB_OK && subject->expert_bytes > 0) {
        status = weight_bytes(&self->bytes, subject->expert_bytes, self->copies, 1, error);
    }
    self->extra = self->schedule.node_copies + self->schedule.remote_copies +
                  self->schedule.storage_copies - self->copies;
    return status == EPLB_OK
               ? price_judge(&self->terms, self->migration, self->scored_layers, self->before.mean,
                             self->after.mean, self->traffic, &self->payoff, error)
               : status;
}

static eplb_status measure(diff_report *self, const diff_subject *subject, eplb_error *error)
{
    eplb_status status = measure_rows(self, subject, error);
    if (status != EPLB_OK) {
        return status;
    }
    summarise(self);
    return make_schedule(self, subject, error);
}

eplb_status diff_report_create(diff_report *self, const diff_subject *subject, eplb_error *error)
{
    const diff_maps *maps = subject->maps;
    *self = (diff_report){.old_path = subject->request->old_path,
                          .new_path = subject->request->new_path,
                          .maps = maps,
                          .layers = eplb_placement_layers(maps->new_map),
                          .experts = eplb_placement_experts(maps->new_map),
                          .gpus = eplb_cluster_gpus(eplb_placement_cluster(maps->new_map)),
                          .old_slots = eplb_placement_slots(maps->old_map),
                          .new_slots = eplb_placement_slots(maps->new_map),
                          .has_load = subject->load != NULL,
                          .bytes = -1,
                          .mode = (eplb_migration_mode)subject->migration.mode,
                          .has_nodes = subject->has_nodes};
    self->terms =
        price_terms_make(subject->price, subject->expert_bytes, self->layers, subject->has_nodes);
    self->rows = calloc((size_t)self->layers, sizeof(*self->rows));
    self->traffic = calloc((size_t)self->gpus, sizeof(*self->traffic));
    self->counts = calloc(2 * (size_t)self->layers * (size_t)self->experts, sizeof(*self->counts));
    eplb_status status = self->rows != NULL && self->traffic != NULL && self->counts != NULL
                             ? measure(self, subject, error)
                             : eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    if (status != EPLB_OK) {
        diff_report_destroy(self);
    }
    return status;
}

void diff_report_destroy(diff_report *self)
{
    eplb_migration_destroy(&self->migration);
    free(self->rows);
    free(self->traffic);
    free(self->counts);
    *self = (diff_report){0};
}
