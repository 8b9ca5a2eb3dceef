/* SPDX-License-Identifier: MIT */
/* What a refiner is asked about a planned layer, and what becomes of its answer. */
#ifndef EPLB_PLANNER_REFINE_H
#define EPLB_PLANNER_REFINE_H

#include "planner/worker.h"

/* Memory for one layer after another of a shape. */
struct eplb_refining {
    int32_t *before; /* [slots] the planned placement */
    int32_t *after;  /* [slots] the refiner's */
    uint8_t *pinned; /* [slots] */
    double *loads;   /* [experts] scaled */
};

eplb_status eplb_refining_init(eplb_refining *refining, const eplb_hooks *hooks,
                               const eplb_shape *shape, eplb_error *error);
void eplb_refining_free(eplb_refining *refining, const eplb_hooks *hooks);

/* Whether slots [slots] that come from outside may be a placement of the layer: valid, and within
 * the rules of its shape. */
bool eplb_refine_is_valid(eplb_layer *layer, const int32_t *slots);

/*
 * Asks the run's refiner about a layer whose loads and pins the worker has taken over and whose row
 * and result are those of the search. What is valid, keeps the rules and is better becomes the row
 * and the result; `bound` may be raised. `total` is that of the worker's summed loads.
 */
eplb_status eplb_refine_layer(eplb_refining *refining, eplb_worker *w, int32_t index, double total,
                              double *bound, eplb_error *error);

#endif
