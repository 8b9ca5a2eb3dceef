/* SPDX-License-Identifier: MIT */
/*
 * Placements: for every MoE layer, which logical expert sits in which physical slot
 * (`physical_to_logical_map`). A placement owns a copy of its cluster. -1 is an empty slot.
 *
 * Layers may have different numbers of slots: the cluster has as many on each GPU as any layer
 * needs, and a layer closes those that it lacks, the last ones of a GPU's run. A closed slot does
 * not exist: it takes no memory, is -1 in the rows, and nothing is missing there.
 *
 * Load accounting here is the engines' even split: each of the c replicas of an expert with load w
 * carries w / c.
 *
 * Threads: many threads may read a placement at once; whoever changes it must be alone.
 */
#ifndef EPLB_PLACEMENT_H
#define EPLB_PLACEMENT_H

#include <stddef.h>
#include <stdint.h>

#include <eplb/cluster.h>
#include <eplb/hooks.h>
#include <eplb/load.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

typedef struct eplb_placement eplb_placement;

/* Makes a placement with every slot empty and layer ids equal to the indices. */
EPLB_API eplb_status eplb_placement_create(eplb_placement **out, const eplb_hooks *hooks,
                                           const eplb_cluster *cluster, int32_t layers,
                                           int32_t experts, eplb_error *error);
EPLB_API eplb_status eplb_placement_clone(eplb_placement **out, const eplb_hooks *hooks,
                                          const eplb_placement *placement, eplb_error *error);

/* Frees the placement and sets the pointer to NULL. */
EPLB_API void eplb_placement_destroy(eplb_placement **placement);

/* The placement's own copy of its cluster, valid as long as the placement. */
EPLB_API const eplb_cluster *eplb_placement_cluster(const eplb_placement *placement);
EPLB_API int32_t eplb_placement_layers(const eplb_placement *placement);
EPLB_API int32_t eplb_placement_experts(const eplb_placement *placement);

/* Slots of one layer, dead GPUs' and closed slots included: the length of a row. */
EPLB_API int32_t eplb_placement_slots(const eplb_placement *placement);

/*
 * Says how many slots one layer has on each GPU: gpu_slots [gpus], each in 0..the cluster's; NULL:
 * all of the cluster's, as in a new placement. The row is not changed: what it has in slots that
 * are closed now is a violation for eplb_placement_validate.
 */
EPLB_API eplb_status eplb_placement_set_layer_slots(eplb_placement *placement, int32_t layer,
                                                    const int32_t *gpu_slots, eplb_error *error);

/* What was said: [gpus], valid until it is said again; NULL when no layer has closed slots, or
 * there is no such layer. */
EPLB_API const int32_t *eplb_placement_layer_slots(const eplb_placement *placement, int32_t layer);

/* Slots that are not closed: those of one layer on one GPU, its first ones, and those of one layer
 * on all GPUs, dead ones too. 0 when an index is out of range. */
EPLB_API int32_t eplb_placement_open_slots_on(const eplb_placement *placement, int32_t layer,
                                              int32_t gpu);
EPLB_API int32_t eplb_placement_open_slots(const eplb_placement *placement, int32_t layer);

/* As for loads: see eplb/load.h. */
EPLB_API eplb_status eplb_placement_set_layer_ids(eplb_placement *placement, const int32_t *ids,
                                                  int32_t model_layers, eplb_error *error);
EPLB_API const int32_t *eplb_placement_layer_ids(const eplb_placement *placement);
EPLB_API int32_t eplb_placement_model_layers(const eplb_placement *placement);

/*
 * Says that the last `count` layers, 0..layers - 1, are those of the draft model that speculative
 * decoding (multi-token prediction, MTP) runs beside the model; 0 in a new placement. They are
 * planned, checked and copied like the others. Their ids go on where the model's own end, as in
 * DeepSeek-V3's checkpoint, whose layers 0 to 60 are the model's and 61 is the draft's, and the
 * number of model layers, where it is known, counts them, too.
 */
EPLB_API eplb_status eplb_placement_set_draft_layers(eplb_placement *placement, int32_t count,
                                                     eplb_error *error);
EPLB_API int32_t eplb_placement_draft_layers(const eplb_placement *placement);

/*
 * Replaces one layer's row [slots]; each value is -1 or in 0..experts-1, else EPLB_ERROR_DATA and
 * the row is unchanged. Nothing else is checked here: see eplb_placement_validate.
 */
EPLB_API eplb_status eplb_placement_set_row(eplb_placement *placement, int32_t layer,
                                            const int32_t *experts, eplb_error *error);

/* One layer's row [slots]; NULL when the index is out of range. Valid as long as the placement. */
EPLB_API const int32_t *eplb_placement_row(const eplb_placement *placement, int32_t layer);

/*
 * Fills one layer with an even spread: the open slots of live GPUs in order get the experts 0, 1,
 * 2, ... and again from 0. EPLB_ERROR_INFEASIBLE, and the row unchanged, when these slots are fewer
 * than the experts or one GPU has more of them than there are experts.
 */
EPLB_API eplb_status eplb_placement_spread(eplb_placement *placement, int32_t layer,
                                           eplb_error *error);

/*
 * Inverse maps of one layer, computed on each call in one pass over its slots.
 * replica_counts: counts [experts] of replicas (`logical_replica_count`).
 * logical_to_physical: map [experts][width] of each expert's slots, ascending, padded with -1;
 * EPLB_ERROR_ARGUMENT when an expert has more replicas than `width`.
 */
EPLB_API eplb_status eplb_placement_replica_counts(const eplb_placement *placement, int32_t layer,
                                                   int32_t *counts, eplb_error *error);
EPLB_API eplb_status eplb_placement_logical_to_physical(const eplb_placement *placement,
                                                        int32_t layer, int32_t *map, int32_t width,
                                                        eplb_error *error);

/*
 * Load of each GPU: gpu_loads [gpus], given expert loads [experts] of that layer. Each GPU's sum
 * runs over its slots in order. An expert that has load and no replica is EPLB_ERROR_DATA.
 */
EPLB_API eplb_status eplb_placement_gpu_loads(const eplb_placement *placement, int32_t layer,
                                              const double *expert_loads, double *gpu_loads,
                                              eplb_error *error);

/*
 * Imbalance of one layer: largest GPU load / mean load of the live GPUs, >= 1. A layer without any
 * load has none: 0 is returned in `imbalance`. Load on a dead GPU is EPLB_ERROR_DATA.
 */
EPLB_API eplb_status eplb_placement_imbalance(const eplb_placement *placement, int32_t layer,
                                              const double *expert_loads, double *imbalance,
                                              eplb_error *error);

/*
 * Share of one layer's (token, expert) pairs that leave their node, 0..1, given expert loads
 * [experts]; 0 without load. The model: tokens come evenly from all live GPUs, and a token whose
 * expert has a replica on its own node stays there. So of an expert's tokens the part
 * 1 - (live GPUs on nodes that hold it) / (live GPUs) leaves. This is SGLang's choice of the
 * nearest replica; TensorRT-LLM and vLLM spread an expert's tokens over all its replicas wherever
 * they are, and send more away. A token with several experts on one other node counts once for
 * each, though engines may send it once. An expert with load and no replica on a live GPU is
 * EPLB_ERROR_DATA. Cost: O(slots + experts + GPUs).
 */
EPLB_API eplb_status eplb_placement_cross_node(const eplb_placement *placement, int32_t layer,
                                               const double *expert_loads, double *share,
                                               eplb_error *error);

/*
 * What can be wrong with a placement. `slot`, `gpu` and `expert` of a violation are -1 where they
 * do not apply.
 */
typedef enum eplb_violation_kind {
    EPLB_VIOLATION_MISSING_EXPERT = 1, /* expert: it has no replica in the layer */
    EPLB_VIOLATION_DUPLICATE = 2,      /* slot, gpu, expert: a second copy on the same GPU */
    EPLB_VIOLATION_EMPTY_SLOT = 3,     /* slot, gpu: nothing in a live GPU's open slot */
    EPLB_VIOLATION_DEAD_GPU = 4,       /* slot, gpu, expert: a replica on a dead GPU */
    EPLB_VIOLATION_CLOSED_SLOT = 5,    /* slot, gpu, expert: a replica in a slot that the layer
                                        * does not have */
} eplb_violation_kind;

typedef struct eplb_violation {
    int32_t kind; /* an eplb_violation_kind */
    int32_t layer;
    int32_t gpu;
    int32_t slot;
    int32_t expert;
} eplb_violation;

#define EPLB_VALIDATE_ALLOW_EMPTY 1u      /* empty slots are no violation */
#define EPLB_VALIDATE_ALLOW_DUPLICATES 2u /* nor is an expert twice on a GPU */

/*
 * Calls `visit` for each violation, layer by layer, in the order of slots and then experts, until
 * it returns non-zero or none is left. `count` (may be NULL) gets the number of violations visited.
 */
EPLB_API eplb_status eplb_placement_check(const eplb_placement *placement, uint32_t flags,
                                          int (*visit)(void *context,
                                                       const eplb_violation *violation),
                                          void *context, int64_t *count, eplb_error *error);

/* Writes a line such as "layer 3: expert 7 twice on GPU 2 (slot 21)" for a violation. `text` holds
 * `size` bytes; a longer line is cut. Returns `text`. */
EPLB_API char *eplb_violation_text(const eplb_placement *placement, const eplb_violation *violation,
                                   char *text, size_t size);

/* EPLB_OK when there is no violation, else EPLB_ERROR_DATA with the first one in words. A writer of
 * placement files calls this before it writes. */
EPLB_API eplb_status eplb_placement_validate(const eplb_placement *placement, uint32_t flags,
                                             eplb_error *error);

/*
 * Number of copies that lead from one placement of a layer to another: pairs (GPU, expert) that
 * `to` has and `from` lacks. Renaming slots inside a GPU is no copy. The two must have as many GPUs
 * and experts; slots may differ.
 */
EPLB_API eplb_status eplb_placement_copies(const eplb_placement *from, const eplb_placement *to,
                                           int32_t layer, int64_t *copies, eplb_error *error);

/*
 * Experts of one layer that have replicas in the placement but none on a live GPU of `cluster`,
 * which has as many GPUs: GPUs have failed, and these experts' weights must come from storage.
 * Writes them, ascending, at most `capacity` of them, into experts (may be NULL when capacity is
 * 0); `count` gets how many there are. EPLB_ERROR_ARGUMENT when something does not match.
 */
EPLB_API eplb_status eplb_placement_lost_experts(const eplb_placement *placement,
                                                 const eplb_cluster *cluster, int32_t layer,
                                                 int32_t *experts, int32_t capacity, int32_t *count,
                                                 eplb_error *error);

/* Most experts of one layer that the failure of a single live GPU would lose, and the GPU (the
 * smaller of equals; -1 when none would be lost). EPLB_ERROR_ARGUMENT for an index out of range. */
EPLB_API eplb_status eplb_placement_single_failure(const eplb_placement *placement, int32_t layer,
                                                   int32_t *lost, int32_t *gpu, eplb_error *error);

EPLB_END_DECLS

#endif
