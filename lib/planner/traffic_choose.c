/* SPDX-License-Identifier: MIT */
/* The choices between balance and traffic of one layer. */
#include <string.h>

#include "planner/traffic.h"

/* No choice tolerates more. */
#define MOST_TOLERANCE 0.05

double eplb_traffic_tolerance(int32_t choice)
{
    static const double tolerances[EPLB_NODE_CHOICES] = {0.0,  0.0,  0.001,         0.005,
                                                         0.01, 0.02, MOST_TOLERANCE};
    return tolerances[choice];
}

static void copy_slots(const eplb_traffic *traffic, int32_t *to, const int32_t *from)
{
    memcpy(to, from, (size_t)traffic->layer->shape->slots * sizeof(*to));
}

/* Balances by swaps that leave replicas on as many nodes as they are. */
static void balance(eplb_traffic *traffic, int32_t effort)
{
    eplb_layer *layer = traffic->layer;
    const eplb_shape *shape = layer->shape;
    layer->shape = &traffic->spread;
    if (traffic->joint != NULL && traffic->scenarios > 1) {
        eplb_joint_rebalance(traffic->joint, effort);
    } else {
        eplb_layer_swap_descent(layer, traffic->reached[0]);
    }
    layer->shape = shape;
    eplb_layer_index(layer);
}

/* Swaps as far as they go, which is out of balance, and balances: mostly that is nearer to balance
 * than what swaps with a small tolerance reach. The placement at hand stays. */
static void make_balanced(eplb_traffic *traffic, int32_t effort)
{
    eplb_layer *layer = traffic->layer;
    double share = eplb_traffic_share(traffic);
    copy_slots(traffic, traffic->aside, layer->slot_expert);
    eplb_traffic_swap(traffic, MOST_TOLERANCE);
    if (eplb_traffic_share(traffic) < share) {
        balance(traffic, effort);
    }
    eplb_traffic_measure(traffic, traffic->largest);
    traffic->balanced_share = eplb_traffic_share(traffic);
    copy_slots(traffic, traffic->balanced, layer->slot_expert);
    copy_slots(traffic, layer->slot_expert, traffic->aside);
    eplb_layer_index(layer);
}

static bool balanced_is_within(const eplb_traffic *traffic, double tolerance)
{
    for (int32_t k = 0; k < traffic->scenarios; k++) {
        if (traffic->largest[k] > traffic->reached[k] * (1.0 + tolerance)) {
            return false;
        }
    }
    return true;
}

/* The balanced placement is the better start where it is within the tolerance. */
static void swap_from_better(eplb_traffic *traffic, double tolerance)
{
    eplb_layer *layer = traffic->layer;
    if (traffic->balanced_share < eplb_traffic_share(traffic) &&
        balanced_is_within(traffic, tolerance)) {
        copy_slots(traffic, layer->slot_expert, traffic->balanced);
        eplb_layer_index(layer);
    }
    eplb_traffic_swap(traffic, tolerance);
}

void eplb_traffic_choose(eplb_traffic *traffic, int32_t choice, int32_t effort)
{
    if (choice == 0) {
        eplb_layer_index(traffic->layer);
    } else if (choice == 1) {
        eplb_traffic_exchange(traffic);
        eplb_traffic_measure(traffic, traffic->reached);
        make_balanced(traffic, effort);
    } else {
        swap_from_better(traffic, eplb_traffic_tolerance(choice));
    }
}
