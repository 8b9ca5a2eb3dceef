/* SPDX-License-Identifier: MIT */
/*
 * Replicas with weights. Serving engines split an expert's tokens evenly over its replicas, which
 * is what everything else in this library counts with. An engine that can give replica r of an
 * expert its own share of the expert's tokens - a table of weights that the dispatch draws from, or
 * quotas for each batch - gets more out of the same slots, for two reasons:
 *
 *   - the best weights for a placement at hand are found exactly and cost no copy, so weights can
 *     follow traffic from minute to minute while experts stay where they are;
 *   - with one slot a GPU more than the experts need, experts <= GPUs x (slots per GPU - 1), there
 *     is for any load a placement that weights balance perfectly.
 *
 * Engines that cannot: vLLM, SGLang, TensorRT-LLM and vLLM-Ascend choose among an expert's
 * replicas by a hash, a random number, a counter or the source rank, each as likely as the other
 * (some after leaving far replicas out). Use this where the dispatch is your own.
 *
 * A weight is the share of its expert's tokens that a slot gets: >= 0, and 1 over all slots of an
 * expert. Empty slots and slots of dead GPUs have 0.
 *
 * Threads: as for placements, many may read one at once.
 */
#ifndef EPLB_SHARES_H
#define EPLB_SHARES_H

#include <stdint.h>

#include <eplb/placement.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

/*
 * The weights [slots] of one layer that make its largest GPU load as small as it can be, given
 * expert loads [experts]. `largest` gets that load, `imbalance` that load / the mean load of the
 * live GPUs: 0 in a layer without load (each may be NULL). Both are of the weights that are
 * returned, and at most 1e-9 of them above the optimum. Weights are even where nothing depends on
 * them: in a layer without load, of an expert without load. An expert without load may even have no
 * replica; one with load and no replica on a live GPU is EPLB_ERROR_DATA. Several replicas of an
 * expert on one GPU are taken as they are.
 *
 * Method: tokens flow from GPUs above a threshold to those below it, through experts that both
 * hold, by Dinic's algorithm. When no more can, the GPUs that are reached from one above the
 * threshold hold experts that nobody else holds; no weights take less than their mean load, which
 * is the next threshold (Newton's method on the minimum cut). Cost: some 50 microseconds for 288
 * slots on 32 GPUs.
 */
EPLB_API eplb_status eplb_shares_best(const eplb_placement *placement, int32_t layer,
                                      const double *expert_loads, double *weights, double *largest,
                                      double *imbalance, eplb_error *error);

/*
 * Load of each GPU, gpu_loads [gpus], under weights [slots] that need not be the best. Each GPU's
 * sum runs over its slots in order. EPLB_ERROR_DATA names the first slot whose weight is negative
 * or not finite, or is not 0 where the slot is empty or its GPU dead, or the first expert with load
 * whose weights do not sum to 1 but for 1e-6.
 */
EPLB_API eplb_status eplb_shares_gpu_loads(const eplb_placement *placement, int32_t layer,
                                           const double *expert_loads, const double *weights,
                                           double *gpu_loads, eplb_error *error);

/*
 * Replaces one layer's row by a placement that weights balance perfectly: under weights [slots],
 * which are returned (may be NULL), each live GPU gets the mean load but for 1e-9 of it. The
 * placement is valid and every open slot of a live GPU is filled, some perhaps with replicas of
 * weight 0. Under an even split it may well be poor: see eplb_placement_imbalance. A layer without
 * load gets an even spread.
 *
 * EPLB_ERROR_INFEASIBLE, naming the slots that are enough, when the live GPUs have not equally many
 * open slots S each in the layer, or there are more than live GPUs x (S - 1) experts; then the row
 * is unchanged. Cost: twice that of eplb_shares_best.
 */
EPLB_API eplb_status eplb_shares_place(eplb_placement *placement, int32_t layer,
                                       const double *expert_loads, double *weights,
                                       eplb_error *error);

EPLB_END_DECLS

#endif
