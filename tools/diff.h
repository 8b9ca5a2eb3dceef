/* SPDX-License-Identifier: MIT */
/* `eplb diff`: what lies between two placements. */
#ifndef EPLB_TOOLS_DIFF_H
#define EPLB_TOOLS_DIFF_H

#include <stdbool.h>

#include <eplb/format.h>
#include <eplb/load.h>
#include <eplb/plan.h>

#include "price.h"
#include "summary.h"

/* Names of the values of eplb_migration_mode; ends with NULL. */
extern const char *const diff_modes[];

/* Two maps of the same layers, experts and GPUs. */
typedef struct diff_maps {
    eplb_placement *old_map;
    eplb_placement *new_map;
} diff_maps;

typedef struct diff_request {
    const char *old_path;
    const char *new_path;
    eplb_read_options reading;
    const id_list *dense_layers; /* items NULL: not given */
} diff_request;

/*
 * Reads both maps. With a load (may be NULL) its layers are compared, and it may get their ids;
 * without, those of the maps, of which dense ones are left out where a format lists all layers of
 * the model. EPLB_ERROR_DATA for maps that do not match each other, with both numbers, and for
 * invalid ones, with the violation. To be given to diff_maps_release in any case.
 */
eplb_status diff_maps_read(diff_maps *self, const diff_request *request, eplb_load *load,
                           const eplb_hooks *hooks, eplb_error *error);
void diff_maps_release(diff_maps *self);

/* One layer. */
typedef struct diff_row {
    int32_t layer_id;
    int64_t copies;
    int32_t changed_slots;
    int32_t more; /* experts with more replicas than before, and with fewer */
    int32_t fewer;
    int64_t gained; /* replicas that these have more, and that those have fewer */
    int64_t lost;
    bool scored; /* there is a load, and the layer has some */
    double before;
    double after;
} diff_row;

typedef struct diff_report {
    const char *old_path;
    const char *new_path;
    const diff_maps *maps;
    int32_t layers;
    int32_t experts;
    int32_t gpus;
    int32_t old_slots;
    int32_t new_slots;
    bool has_load;
    int32_t scored_layers;
    summary before;
    summary after;
    int32_t changed_layers; /* in any slot */
    int32_t copied_layers;  /* with copies */
    int64_t copies;
    int64_t bytes;  /* of the copies; -1: not known */
    int64_t extra;  /* copies of the schedule beyond these */
    bool has_nodes; /* something says which GPUs share a node */
    price_terms terms;
    eplb_payoff payoff;        /* without a load the gain is 0 */
    eplb_migration *migration; /* how it is carried out */
    eplb_migration_info schedule;
    eplb_migration_mode mode;
    eplb_gpu_copies *traffic; /* [gpus] */
    diff_row *rows;           /* [layers] */
    int32_t *counts;          /* [layers][2][experts] replicas before and after */
} diff_report;

/* What is told about beside the maps. */
typedef struct diff_subject {
    const diff_request *request;
    const diff_maps *maps;
    const eplb_load *load; /* NULL: none */
    eplb_objective objective;
    const price_values *price;
    int64_t expert_bytes; /* 0: not known */
    bool has_nodes;
    eplb_migration_options migration;
} diff_subject;

/* Keeps pointers to the subject's maps and paths. */
eplb_status diff_report_create(diff_report *self, const diff_subject *subject, eplb_error *error);
void diff_report_destroy(diff_report *self);

/* Prints it for people, or as one JSON document, on standard output; returns the exit code. */
int diff_report_print(const diff_report *self);
int diff_report_print_json(const diff_report *self);

#endif
