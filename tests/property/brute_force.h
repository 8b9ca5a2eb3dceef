/* SPDX-License-Identifier: MIT */
/* The least objective of a tiny layer, from every set of experts on every GPU. */
#ifndef EPLB_TESTS_BRUTE_FORCE_H
#define EPLB_TESTS_BRUTE_FORCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define BRUTE_EXPERTS 8
#define BRUTE_GPUS 4
#define BRUTE_SCENARIOS 3

/* Sets of experts are bits. */
typedef struct brute_force {
    double loads[BRUTE_SCENARIOS][BRUTE_EXPERTS];
    double weights[BRUTE_SCENARIOS]; /* sum 1 */
    int32_t scenarios;
    bool largest_counts; /* of the scenarios, instead of their mean */
    int32_t experts;
    int32_t gpus;
    int32_t slots[BRUTE_GPUS];
    uint32_t pins[BRUTE_GPUS];
    int32_t min_replicas;
    int32_t max_replicas;
    uint32_t chosen[BRUTE_GPUS];
    double best; /* INFINITY: there is no placement */
} brute_force;

static inline double brute_imbalance(const brute_force *b, const double *loads,
                                     const int32_t *count)
{
    double worst = 0.0;
    double total = 0.0;
    for (int32_t g = 0; g < b->gpus; g++) {
        double load = 0.0;
        for (int32_t e = 0; e < b->experts; e++) {
            load += b->chosen[g] >> e & 1u ? loads[e] / count[e] : 0.0;
        }
        worst = load > worst ? load : worst;
        total += load;
    }
    return worst / total * b->gpus;
}

static inline void brute_score(brute_force *b)
{
    int32_t count[BRUTE_EXPERTS] = {0};
    for (int32_t e = 0; e < b->experts; e++) {
        for (int32_t g = 0; g < b->gpus; g++) {
            count[e] += (int32_t)(b->chosen[g] >> e & 1u);
        }
        if (count[e] < b->min_replicas || count[e] > b->max_replicas) {
            return;
        }
    }
    double value = 0.0;
    for (int32_t k = 0; k < b->scenarios; k++) {
        double imbalance = brute_imbalance(b, b->loads[k], count);
        value = !b->largest_counts  ? value + imbalance * b->weights[k]
                : imbalance > value ? imbalance
                                    : value;
    }
    b->best = value < b->best ? value : b->best;
}

static inline int32_t brute_size(uint32_t set)
{
    int32_t size = 0;
    for (; set != 0; set &= set - 1) {
        size++;
    }
    return size;
}

/* Fills the GPUs from `gpu` on; GPUs alike get their sets in order. */
static inline void brute_try(brute_force *b, int32_t gpu)
{
    if (gpu >= b->gpus || gpu >= BRUTE_GPUS) {
        brute_score(b);
        return;
    }
    bool alike = gpu > 0 && b->slots[gpu] == b->slots[gpu - 1] && b->pins[gpu] == b->pins[gpu - 1];
    for (uint32_t set = alike ? b->chosen[gpu - 1] : 0; set < 1u << b->experts; set++) {
        if ((set & b->pins[gpu]) == b->pins[gpu] && brute_size(set) == b->slots[gpu]) {
            b->chosen[gpu] = set;
            brute_try(b, gpu + 1);
        }
    }
}

#endif
