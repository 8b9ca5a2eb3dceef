/* SPDX-License-Identifier: MIT */
/*
 * A part of a layer's placement as an integer program: some GPUs are free to be filled anew, all
 * others stay as they are. Replica counts move by one at most, so that only shares change on the
 * GPUs that stay.
 */
#ifndef EPLB_ILP_REGION_H
#define EPLB_ILP_REGION_H

#include <eplb/refine.h>

#include "ilp/model.h"

#define EPLB_ILP_REGION_GPUS 12    /* free GPUs at most */
#define EPLB_ILP_REGION_EXPERTS 96 /* experts that may have replicas on them, at most */
#define EPLB_ILP_REGION_COUNTS 3   /* replica counts that an expert may have */

/* An expert that may have replicas on free GPUs. */
typedef struct eplb_ilp_guest {
    int32_t expert;
    int32_t outside;                        /* replicas on other GPUs, which stay */
    int32_t inside;                         /* replicas on free GPUs now */
    int32_t counts;                         /* how many choices of all its replicas there are */
    int32_t count[EPLB_ILP_REGION_COUNTS];  /* the choices, rising */
    int32_t chosen[EPLB_ILP_REGION_COUNTS]; /* columns: 1 when it is this one; -1: no choice */
    int32_t first[EPLB_ILP_REGION_COUNTS];  /* columns: 1 on the first, second .. free GPU with this
                                             * count; -1: none then */
} eplb_ilp_guest;

/* A placement and what it is worth. */
typedef struct eplb_ilp_region {
    const eplb_refine_task *task;
    int32_t *placement; /* [slots] */
    int32_t *count;     /* [experts] replicas */
    double *load;       /* [gpus][scenarios] */
    double *largest;    /* [scenarios] */
    double value;

    int32_t free_gpus;
    int32_t gpu[EPLB_ILP_REGION_GPUS]; /* distinct */
    int32_t guests;
    eplb_ilp_guest guest[EPLB_ILP_REGION_EXPERTS];

    uint8_t *is_free;    /* [gpus] */
    int32_t *guest_of;   /* [experts] -1: none */
    double *kept;        /* [scenarios] the largest load of GPUs whose loads cannot change */
    int32_t *largest_of; /* [scenarios] columns */
    int32_t *inner_of;   /* [scenarios] columns: the largest load of free GPUs */
} eplb_ilp_region;

eplb_status eplb_ilp_region_init(eplb_ilp_region *region, const eplb_hooks *hooks,
                                 const eplb_refine_task *task, const int32_t *placement,
                                 eplb_error *error);
void eplb_ilp_region_free(eplb_ilp_region *region, const eplb_hooks *hooks);

/* Recomputes counts, loads and the value from the placement. */
void eplb_ilp_region_score(eplb_ilp_region *region);

/*
 * Makes guests of the experts on the free GPUs and of the movers [count], whose counts may move by
 * one. False when they are too many.
 */
bool eplb_ilp_region_invite(eplb_ilp_region *region, const int32_t *movers, int32_t count);

/* Writes the program of the free GPUs and guests into an empty model. */
void eplb_ilp_region_model(eplb_ilp_region *region, eplb_ilp_model *model);

/* The values [columns] of the placement as it is. */
void eplb_ilp_region_start(const eplb_ilp_region *region, const eplb_ilp_model *model,
                           double *values);

/* Fills the free GPUs as the values say. A replica that stays on its GPU stays in its slot. */
void eplb_ilp_region_apply(eplb_ilp_region *region, const double *values);

#endif
