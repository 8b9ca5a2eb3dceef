/* SPDX-License-Identifier: MIT */
/*
 * A few GPUs of a large layer, whose experts are arranged anew while the others keep theirs. The
 * number of replicas of some experts may change, too, which changes loads everywhere.
 */
#ifndef EPLB_ILP_FEWEST_PART_H
#define EPLB_ILP_FEWEST_PART_H

#include <eplb/random.h>

#include "ilp/fewest.h"
#include "ilp/model.h"

#define EPLB_FEWEST_PART_GPUS 8
#define EPLB_FEWEST_BINARIES 250
/* Of these, so many for the replicas as they are; the rest is for other numbers of them. */
#define EPLB_FEWEST_FIXED_BINARIES 160

/* A placement at hand. */
typedef struct eplb_fewest_state {
    const eplb_fewest_layer *layer;
    int32_t *chosen; /* [slots] it decides; the others follow from it */
    int32_t *count;  /* [experts] */
    double *load;    /* [gpus][scenarios] */
    uint8_t *holds;  /* [gpus][experts] */
} eplb_fewest_state;

eplb_status eplb_fewest_state_init(eplb_fewest_state *state, const eplb_fewest_layer *layer,
                                   eplb_error *error);
void eplb_fewest_state_free(eplb_fewest_state *state);
void eplb_fewest_state_index(eplb_fewest_state *state);

static inline bool eplb_fewest_holds(const eplb_fewest_state *state, int32_t gpu, int32_t expert)
{
    return state->holds[(size_t)gpu * (size_t)state->layer->experts + (size_t)expert] != 0;
}

static inline double eplb_fewest_load(const eplb_fewest_state *state, int32_t gpu, int32_t scenario)
{
    return state->load[(size_t)gpu * (size_t)state->layer->scenarios + (size_t)scenario];
}

/* Copies on a GPU. */
int32_t eplb_fewest_copies_on(const eplb_fewest_state *state, int32_t gpu);

/* A binary column: the expert is on the GPU, with a certain number of replicas. */
typedef struct eplb_fewest_pick {
    int32_t column;
    int32_t gpu;
    int32_t expert;
} eplb_fewest_pick;

typedef struct eplb_fewest_part {
    eplb_fewest_state *state;
    int32_t gpus;
    int32_t gpu[EPLB_FEWEST_PART_GPUS];
    bool each_scenario; /* every scenario must keep to the limit, not only their mean */
    eplb_random *noise; /* of copies that are equally many, some are cheaper; NULL: none */

    eplb_ilp_model model;
    int32_t binaries;
    int32_t picks;
    eplb_fewest_pick pick[EPLB_FEWEST_BINARIES];
    int32_t slot_row[EPLB_FEWEST_PART_GPUS];
    int32_t copies_row;
    int32_t *inside;   /* [experts] replicas on the part's GPUs */
    int32_t *low;      /* [experts] fewest and most replicas in all */
    int32_t *high;     /* [experts] */
    int32_t *load_row; /* [gpus][scenarios] -1: none yet */
    int32_t *peak;     /* [scenarios] column of the scenario's largest load */
    double *values;    /* [columns] */
} eplb_fewest_part;

eplb_status eplb_fewest_part_init(eplb_fewest_part *part, eplb_fewest_state *state,
                                  eplb_error *error);
void eplb_fewest_part_free(eplb_fewest_part *part);

/* How many GPUs a part has, by the slots of the largest; below 2: parts are of no use. */
int32_t eplb_fewest_part_gpus(const eplb_fewest_layer *layer);

/* Whether the part has the GPU. */
bool eplb_fewest_part_has(const eplb_fewest_part *part, int32_t gpu);

/* Chooses the experts whose number of replicas may change, as many as the binaries allow. */
void eplb_fewest_part_choose_counts(eplb_fewest_part *part);

/* Builds the model: fewest copies on the part's GPUs, at most `most`, with all loads in the limit;
 * GPUs outside that are above it must not get more. */
eplb_status eplb_fewest_part_build(eplb_fewest_part *part, int32_t most, eplb_error *error);

/* Solves it; EPLB_FEWEST_FOUND: the state is changed. */
eplb_fewest_end eplb_fewest_part_solve(eplb_fewest_part *part, eplb_fewest_layer *layer,
                                       int64_t memory_bytes, eplb_error *error);

#endif
