/* SPDX-License-Identifier: MIT */
/* How much GPU loads would vary from step to step if every token chose its experts by itself. */
#include "stats/split.h"

#include <string.h>

#include "model/cluster.h"

/*
 * chance [experts]: that a token goes to the expert. weight [experts]: how much its part of the
 * expert varies. One of k experts: the chances themselves, and the variance of a GPU with the parts
 * a_e is sum w a^2 - (sum w a)^2 / sum w. k at once: that formula again, with Hajek's weights
 * c (1 - c) n / (n - 1), exact when the n experts are alike.
 */
static void weigh(double *weight, const eplb_step_layer *layer, int32_t experts, int32_t topk)
{
    int32_t open = 0; /* experts that a token may choose or not */
    for (int32_t e = 0; e < experts; e++) {
        double chance = layer->experts[e] / layer->assignments * (topk > 1 ? topk : 1);
        chance = chance < 1.0 ? chance : 1.0;
        open += chance > 0.0 && chance < 1.0;
        weight[e] = topk > 1 ? chance * (1.0 - chance) : chance;
    }
    for (int32_t e = 0; e < experts && topk > 1 && open > 1; e++) {
        weight[e] *= (double)open / (open - 1);
    }
}

/* part [experts], zeros, and left so. */
static double variance_of_gpu(const eplb_step_layer *layer, const int32_t *slots, int32_t count,
                              const double *weight, double all, double *part)
{
    double first = 0.0;
    double second = 0.0;
    for (int32_t s = 0; s < count; s++) {
        if (slots[s] >= 0) {
            part[slots[s]] += 1.0 / layer->replicas[slots[s]];
        }
    }
    for (int32_t s = 0; s < count; s++) {
        if (slots[s] >= 0) {
            double *share = &part[slots[s]];
            first += weight[slots[s]] * *share;
            second += weight[slots[s]] * *share * *share;
            *share = 0.0;
        }
    }
    return second - first * first / all;
}

double eplb_split_independent_variance(const eplb_step_layer *layer, const eplb_cluster *cluster,
                                       int32_t experts, int32_t topk, double *scratch)
{
    double *weight = scratch;
    double *part = scratch + experts;
    memset(part, 0, (size_t)experts * sizeof(*part));
    weigh(weight, layer, experts, topk);
    double all = 0.0;
    for (int32_t e = 0; e < experts; e++) {
        all += weight[e];
    }
    double variance = 0.0;
    for (int32_t g = 0; g < cluster->gpus && all > 0.0; g++) {
        const int32_t *slots = layer->row + cluster->first_slot[g];
        variance += variance_of_gpu(layer, slots, cluster->gpu[g].slots, weight, all, part);
    }
    return variance / (topk > 1 ? topk : 1);
}
