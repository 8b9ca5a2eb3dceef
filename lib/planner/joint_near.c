/* SPDX-License-Identifier: MIT */
/* For each expert, others whose replicas carry much the same in every scenario: a swap with one of
 * them is a small step. */
#include <float.h>

#include "planner/joint.h"

/* Looked for among so many experts before and after it in the order of the mean share: like loads
 * have like means. */
#define REACH 24

/* A swap with one that carries the same changes nothing: taken only where there are no others. */
#define USELESS FLT_MAX

/* Squared distance of two experts' shares. */
static float distance(const eplb_joint *joint, int32_t e, int32_t f)
{
    const eplb_lanes *a = joint->lanes + (size_t)e * (size_t)joint->groups;
    const eplb_lanes *b = joint->lanes + (size_t)f * (size_t)joint->groups;
    eplb_lanes sum = eplb_lanes_of(0.0f);
    for (int32_t v = 0; v < joint->groups; v++) {
        eplb_lanes difference = a[v] - b[v];
        sum += difference * difference;
    }
    return eplb_lanes_sum(sum);
}

/* Keeps the nearest so far, nearest first. */
static void offer(int32_t *near, float *distances, int32_t *count, int32_t most, int32_t expert,
                  float far)
{
    int32_t place = *count;
    if (place == most && !(far < distances[most - 1])) {
        return;
    }
    place = place < most ? place : most - 1;
    while (place > 0 && far < distances[place - 1]) {
        near[place] = near[place - 1];
        distances[place] = distances[place - 1];
        place--;
    }
    near[place] = expert;
    distances[place] = far;
    *count += *count < most ? 1 : 0;
}

static void order_by_mean(eplb_joint *joint)
{
    eplb_layer *layer = joint->layer;
    size_t scenarios = (size_t)joint->scenarios;
    for (int32_t e = 0; e < joint->shape->experts; e++) {
        const double *share = joint->share + (size_t)e * scenarios;
        double sum = 0.0;
        for (size_t k = 0; k < scenarios; k++) {
            sum += share[k];
        }
        layer->order[e] = e;
        layer->key[e] = sum;
    }
    eplb_sort_descending(layer->order, joint->shape->experts, layer->key, layer->position);
}

void eplb_joint_find_near(eplb_joint *joint)
{
    int32_t experts = joint->shape->experts;
    const int32_t *order = joint->layer->order;
    order_by_mean(joint);
    for (int32_t i = 0; i < experts; i++) {
        int32_t *near = joint->near + (size_t)order[i] * (size_t)joint->near_count;
        float distances[EPLB_JOINT_NEAR];
        int32_t count = 0;
        int32_t last = i + REACH < experts - 1 ? i + REACH : experts - 1;
        for (int32_t j = i > REACH ? i - REACH : 0; j <= last; j++) {
            if (j != i) {
                float far = distance(joint, order[i], order[j]);
                offer(near, distances, &count, joint->near_count, order[j],
                      far > 0.0f ? far : USELESS);
            }
        }
    }
}
