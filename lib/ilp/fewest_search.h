/* SPDX-License-Identifier: MIT */
/*
 * The search through a small layer: replica counts, expert by expert; for each that may do, GPU by
 * GPU the experts that it keeps and gains. Sets of experts are words of bits.
 */
#ifndef EPLB_ILP_FEWEST_SEARCH_H
#define EPLB_ILP_FEWEST_SEARCH_H

#include "ilp/fewest.h"

#define EPLB_FEWEST_MOST_EXPERTS 64
#define EPLB_FEWEST_MOST_GPUS 64

/* A GPU in the order in which they are filled. */
typedef struct eplb_fewest_level {
    int32_t gpu;
    int32_t slots;
    int32_t fewest;      /* copies that it takes at least */
    int32_t fewest_rest; /* that it and those after it take at least */
    int32_t copies;      /* that are left for it and those after it */
    int32_t most;        /* that it may take itself */
    uint64_t home;       /* bits by place in the order of experts */
    uint64_t allowed;    /* experts with replicas left */
    uint64_t required;   /* experts with a replica left for each GPU left */
    uint64_t chosen;
    bool like_last; /* the level before has as many slots and the same experts at home */
} eplb_fewest_level;

struct eplb_fewest_search {
    eplb_fewest_layer *layer;
    double loose; /* the limit with room for rounding: looked for first, then measured */
    int32_t copies;
    eplb_error *error;

    uint64_t home[EPLB_FEWEST_MOST_GPUS]; /* bit e */

    /* Of the counts. */
    int32_t by_load[EPLB_FEWEST_MOST_EXPERTS];  /* experts, the heaviest first */
    int32_t fewest[EPLB_FEWEST_MOST_EXPERTS];   /* replicas with which a share may fit a GPU */
    int32_t room[EPLB_FEWEST_MOST_EXPERTS + 1]; /* for more replicas than the fewest, from here */
    int32_t homes[EPLB_FEWEST_MOST_EXPERTS];    /* GPUs that have the expert at home */
    int32_t count[EPLB_FEWEST_MOST_EXPERTS];
    int32_t most_dropped; /* replicas fewer than homes, over all experts */

    /* Of the packing. Experts by their place in `by_share`. */
    int32_t by_share[EPLB_FEWEST_MOST_EXPERTS]; /* experts, the largest share first */
    int32_t left[EPLB_FEWEST_MOST_EXPERTS];     /* replicas not placed yet */
    double *share;                              /* [scenarios][experts] */
    double *smallest; /* [scenarios][experts + 1] smallest share from a place on */
    double *largest;  /* [scenarios][experts + 1] */
    int32_t *sorted;  /* [scenarios][experts] places, the smallest share first */
    eplb_fewest_level level[EPLB_FEWEST_MOST_GPUS + 1];
    uint8_t *later_homes; /* [gpus + 1][experts] GPUs from a level on that have it at home */
    double *worst;        /* [gpus + 1][scenarios] largest load before a level, at least 1 */
    double *rest;         /* [gpus + 1][scenarios] load for a level and those after it */
    double *cap;          /* [gpus + 1][scenarios] largest load that a level may have */
    double *floor;        /* [gpus + 1][scenarios] smallest that it must have */
    double *sum;          /* [gpus][experts + 1][scenarios] load of those chosen before a place */
    int32_t *chosen;      /* [slots] */
};

/* Packs the counts at hand. */
eplb_fewest_end eplb_fewest_pack(eplb_fewest_search *search);

/* Largest load of any GPU in a scenario, when others have at least `worst` [scenarios] >= 1. */
double eplb_fewest_cap(const eplb_fewest_search *search, const double *worst, int32_t scenario);

#endif
