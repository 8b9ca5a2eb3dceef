/* SPDX-License-Identifier: MIT */
/*
 * Synthetic expert loads that look like real ones: for each MoE layer and traffic domain, lognormal
 * expert popularities, and counts of tokens drawn from them.
 *
 * The figures are those seen in recordings of DeepSeek-V3: the logarithm of an expert's load has a
 * standard deviation of 0.56 (first layer) to 0.86 (last), of which 0.23 to 0.41 is common to the
 * experts of a group; how skewed a layer is correlates by 0.7 with its neighbour; between two
 * traffic domains the logarithms differ by 0.2 to 0.5.
 *
 * What it does not model: experts of different layers are independent; a group is a run of expert
 * ids; the tokens of a step choose independently of each other, so there are no long prompts, no
 * bursts and no correlation from step to step other than the domain's; dense layers, padding and
 * warm-up. A token's experts are distinct, which flattens the hottest experts a little.
 *
 * The same seed gives the same counts on every platform: only +, -, *, / and sqrt decide.
 */
#ifndef EPLB_TOOLS_SYNTH_MODEL_H
#define EPLB_TOOLS_SYNTH_MODEL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct synth_shape {
    int32_t layers;
    int32_t experts;
    int32_t topk;    /* experts of a token, <= experts */
    int32_t tokens;  /* of a step */
    int32_t groups;  /* divides experts; 1: no group effect */
    int32_t domains; /* of traffic */
    uint64_t seed;
} synth_shape;

typedef struct synth_model synth_model;

/* NULL: out of memory. */
synth_model *synth_model_create(const synth_shape *shape);
void synth_model_destroy(synth_model *self);

/* Draws counts [experts] of one step's tokens: each token goes to topk different experts, chosen
 * one after another with the popularities of the layer in that domain. The counts sum to
 * tokens * topk and none is larger than tokens. Calls draw from one sequence: their order
 * matters. */
void synth_model_draw(synth_model *self, int32_t domain, int32_t layer, int32_t *counts);

#endif
