/* SPDX-License-Identifier: MIT */
/*
 * Loads: how many tokens each logical expert of each MoE layer gets, in one or more scenarios (a
 * time slice, a tenant, prefill or decode). Values are finite doubles >= 0, so counts are exact up
 * to 2^53 and averages are allowed too.
 *
 * Layers have two numbers. The MoE index is the position in the load, 0..layers-1. The model layer
 * id is the layer's number in the model, dense layers counted: strictly ascending, >= 0. A new load
 * has ids equal to the indices and an unknown number of model layers.
 *
 * Threads: many threads may read a load at once; whoever changes it must be alone.
 */
#ifndef EPLB_LOAD_H
#define EPLB_LOAD_H

#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

/* Upper limits of every shape in the library; larger values are EPLB_ERROR_ARGUMENT. */
#define EPLB_MAX_LAYERS 65536
#define EPLB_MAX_EXPERTS 65536
#define EPLB_MAX_SCENARIOS 4096

typedef struct eplb_load eplb_load;

/*
 * Makes a load of zeros. Each dimension is at least 1 and at most its limit above. The object is
 * the caller's, to be given to eplb_load_destroy. Memory: 8 bytes for each scenario, layer and
 * expert.
 */
EPLB_API eplb_status eplb_load_create(eplb_load **out, const eplb_hooks *hooks, int32_t scenarios,
                                      int32_t layers, int32_t experts, eplb_error *error);

/* Frees the load and sets the pointer to NULL. */
EPLB_API void eplb_load_destroy(eplb_load **load);

EPLB_API int32_t eplb_load_scenarios(const eplb_load *load);
EPLB_API int32_t eplb_load_layers(const eplb_load *load);
EPLB_API int32_t eplb_load_experts(const eplb_load *load);

/*
 * Replaces the row [experts] of one scenario and layer. EPLB_ERROR_DATA names the first value that
 * is NaN, infinite or negative; EPLB_ERROR_OVERFLOW: the row's sum is not finite. Then the row is
 * unchanged.
 */
EPLB_API eplb_status eplb_load_set_row(eplb_load *load, int32_t scenario, int32_t layer,
                                       const double *values, eplb_error *error);

/* The row [experts] of one scenario and layer; NULL when an index is out of range. Valid until the
 * load is destroyed; later set_row calls show through it. */
EPLB_API const double *eplb_load_row(const eplb_load *load, int32_t scenario, int32_t layer);

/*
 * Says which model layers the rows belong to: `ids` [layers], strictly ascending, 0 <= id <
 * model_layers. `model_layers` counts all hidden layers of the model, dense ones too, and those of
 * a draft model whose layers are among the rows (see eplb_placement_set_draft_layers); 0: unknown.
 */
EPLB_API eplb_status eplb_load_set_layer_ids(eplb_load *load, const int32_t *ids,
                                             int32_t model_layers, eplb_error *error);

/* The ids [layers], valid until the load is destroyed. */
EPLB_API const int32_t *eplb_load_layer_ids(const eplb_load *load);

/* Number of all hidden layers of the model; 0: unknown. */
EPLB_API int32_t eplb_load_model_layers(const eplb_load *load);

/*
 * Names a scenario (copied; NULL removes the name) and gives it a weight > 0 (finite; default 1).
 * The name appears in reports only.
 */
EPLB_API eplb_status eplb_load_set_scenario(eplb_load *load, int32_t scenario, const char *name,
                                            double weight, eplb_error *error);
EPLB_API const char *eplb_load_scenario_name(const eplb_load *load, int32_t scenario);
EPLB_API double eplb_load_scenario_weight(const eplb_load *load, int32_t scenario);

/* 1 when no expert of the layer has load in any scenario; 0 when one has, or there is no such
 * layer. */
EPLB_API int32_t eplb_load_layer_is_zero(const eplb_load *load, int32_t layer);

/*
 * Sums one layer over the scenarios, each scaled by its weight, into row [experts]; a single
 * scenario is taken as it is. `total` (may be NULL) gets the sum of the row. EPLB_ERROR_OVERFLOW
 * when that is not finite; then the row's values are of no use.
 */
EPLB_API eplb_status eplb_load_sum_row(const eplb_load *load, int32_t layer, double *row,
                                       double *total, eplb_error *error);

/*
 * A builder sums rows that arrive in any order into a load, for sources whose shape is known only
 * at their end: the sink for readers of count files.
 *
 * Threads: a builder belongs to one thread at a time.
 */
typedef struct eplb_load_builder eplb_load_builder;

EPLB_API eplb_status eplb_load_builder_create(eplb_load_builder **out, const eplb_hooks *hooks,
                                              int32_t scenarios, eplb_error *error);
EPLB_API void eplb_load_builder_destroy(eplb_load_builder **builder);

/*
 * Adds counts [length] of experts 0..length-1 to the row of `layer_id` (0..EPLB_MAX_LAYERS-1) of a
 * scenario. Values as in eplb_load_set_row. A failed call leaves the builder as it was.
 */
EPLB_API eplb_status eplb_load_builder_add(eplb_load_builder *builder, int32_t scenario,
                                           int32_t layer_id, const double *counts, int32_t length,
                                           eplb_error *error);

/*
 * Makes the load of everything added. Its layers are the layer ids seen, ascending, in all
 * scenarios alike: one that a scenario lacks is EPLB_ERROR_DATA, for a missing layer is not a zero
 * one. `experts`: the number of logical experts, or 0 to take the longest row; a longer row than
 * `experts` is EPLB_ERROR_DATA; a sum that is not finite is EPLB_ERROR_OVERFLOW. The builder may go
 * on adding.
 */
EPLB_API eplb_status eplb_load_builder_finish(const eplb_load_builder *builder, eplb_load **out,
                                              int32_t experts, eplb_error *error);

/*
 * Makes a load without the layers whose ids are listed: dense layers, which route nothing. Each
 * listed layer that is present must be zero in every scenario (else EPLB_ERROR_DATA), and at least
 * one layer must stay. Ids and the number of model layers are kept.
 */
EPLB_API eplb_status eplb_load_without_layers(eplb_load **out, const eplb_load *load,
                                              const int32_t *ids, int32_t count, eplb_error *error);

EPLB_END_DECLS

#endif
