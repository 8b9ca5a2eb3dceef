/* SPDX-License-Identifier: MIT */
/* Swaps of the heaviest GPU's replicas until none helps. */
#include <string.h>

#include "planner/layer.h"

/* Each GPU's slots in the order of their shares, largest first, so that the swap between two GPUs
 * that comes closest to a wanted difference is found in one pass over both. */
typedef struct descent {
    eplb_layer *layer;
    double *slot_share; /* [slots] */
    int32_t *by_load;   /* [gpus] the lightest first, equal loads by smaller GPU */
    double mean;
} descent;

/* Real layers end after some 10 to 20 moves looked at for each slot. */
#define MOVES_PER_SLOT 1000

/* A swap that takes this part of the heaviest GPU's excess over the mean is taken at once. */
#define GOOD_PART 0.75

typedef struct swap {
    int32_t heavy_slot;
    int32_t light_slot;
    int32_t place; /* of the light GPU in by_load; -1: no swap */
    double worst;  /* the larger of the two GPUs' loads after the swap */
} swap;

static void sort_slots(descent *d)
{
    eplb_layer *layer = d->layer;
    const int32_t *first_slot = layer->shape->first_slot;
    for (int32_t g = 0; g < layer->shape->gpus; g++) {
        int32_t *experts = layer->slot_expert + first_slot[g];
        eplb_sort_descending(experts, first_slot[g + 1] - first_slot[g], layer->share,
                             layer->aside);
    }
    for (int32_t s = 0; s < layer->shape->slots; s++) {
        d->slot_share[s] = layer->share[layer->slot_expert[s]];
    }
}

static bool allowed(const eplb_layer *layer, int32_t heavy, int32_t light, int32_t i, int32_t j)
{
    return eplb_layer_may_swap(layer, heavy, layer->slot_expert[i], light, layer->slot_expert[j]);
}

/*
 * A swap that moves d from the heavy to the light GPU leaves the larger of them at their middle
 * plus |d - half their difference|. So for each slot of the heavy one only the two slots of the
 * light one around that point can be best.
 */
static void scan_pair(const descent *d, int32_t heavy, int32_t place, swap *best)
{
    int32_t light = d->by_load[place];
    const eplb_layer *layer = d->layer;
    const double *share = d->slot_share;
    double half = (layer->gpu_load[heavy] - layer->gpu_load[light]) / 2.0;
    double middle = layer->gpu_load[light] + half;
    double nearest = best->worst - middle;
    int32_t begin = layer->shape->first_slot[light];
    int32_t end = layer->shape->first_slot[light + 1];
    int32_t j = begin;
    for (int32_t i = layer->shape->first_slot[heavy]; i < layer->shape->first_slot[heavy + 1];
         i++) {
        double wanted = share[i] - half;
        while (j < end && share[j] > wanted) {
            j++;
        }
        if (j < end && wanted - share[j] < nearest && allowed(layer, heavy, light, i, j)) {
            nearest = wanted - share[j];
            *best = (swap){i, j, place, middle + nearest};
        }
        if (j > begin && share[j - 1] - wanted < nearest &&
            allowed(layer, heavy, light, i, j - 1)) {
            nearest = share[j - 1] - wanted;
            *best = (swap){i, j - 1, place, middle + nearest};
        }
    }
}

static void insert_sorted(descent *d, int32_t first, int32_t slot)
{
    int32_t expert = d->layer->slot_expert[slot];
    double share = d->slot_share[slot];
    while (slot > first && d->slot_share[slot - 1] < share) {
        d->layer->slot_expert[slot] = d->layer->slot_expert[slot - 1];
        d->slot_share[slot] = d->slot_share[slot - 1];
        slot--;
    }
    d->layer->slot_expert[slot] = expert;
    d->slot_share[slot] = share;
}

static void reinsert(descent *d, int32_t slot, int32_t first, int32_t end)
{
    /* The new share may belong before or after its place: shift towards the end, then insert. */
    int32_t expert = d->layer->slot_expert[slot];
    double share = d->slot_share[slot];
    while (slot + 1 < end && d->slot_share[slot + 1] > share) {
        d->layer->slot_expert[slot] = d->layer->slot_expert[slot + 1];
        d->slot_share[slot] = d->slot_share[slot + 1];
        slot++;
    }
    d->layer->slot_expert[slot] = expert;
    d->slot_share[slot] = share;
    insert_sorted(d, first, slot);
}

static void apply(descent *d, int32_t heavy, int32_t light, const swap *chosen)
{
    eplb_layer *layer = d->layer;
    const int32_t *first_slot = layer->shape->first_slot;
    int32_t i = chosen->heavy_slot;
    int32_t j = chosen->light_slot;
    int32_t from_heavy = layer->slot_expert[i];
    int32_t from_light = layer->slot_expert[j];
    double difference = d->slot_share[i] - d->slot_share[j];
    layer->gpu_load[heavy] -= difference;
    layer->gpu_load[light] += difference;
    eplb_layer_flip(layer, heavy, from_heavy);
    eplb_layer_flip(layer, heavy, from_light);
    eplb_layer_flip(layer, light, from_light);
    eplb_layer_flip(layer, light, from_heavy);
    layer->slot_expert[i] = from_light;
    layer->slot_expert[j] = from_heavy;
    d->slot_share[i] = layer->share[from_light];
    d->slot_share[j] = layer->share[from_heavy];
    reinsert(d, i, first_slot[heavy], first_slot[heavy + 1]);
    reinsert(d, j, first_slot[light], first_slot[light + 1]);
}

static bool lighter(const eplb_layer *layer, int32_t a, int32_t b)
{
    return layer->gpu_load[a] < layer->gpu_load[b] ||
           (layer->gpu_load[a] == layer->gpu_load[b] && a < b);
}

/* Moves the GPU at `place` to where its load belongs. */
static void reorder_gpu(descent *d, int32_t place)
{
    int32_t gpu = d->by_load[place];
    int32_t last = d->layer->shape->gpus - 1;
    for (; place > 0 && lighter(d->layer, gpu, d->by_load[place - 1]); place--) {
        d->by_load[place] = d->by_load[place - 1];
    }
    for (; place < last && lighter(d->layer, d->by_load[place + 1], gpu); place++) {
        d->by_load[place] = d->by_load[place + 1];
    }
    d->by_load[place] = gpu;
}

static void sort_gpus(descent *d)
{
    eplb_layer *layer = d->layer;
    int32_t gpus = layer->shape->gpus;
    double total = 0.0;
    for (int32_t g = 0; g < gpus; g++) {
        total += layer->gpu_load[g];
        d->by_load[g] = g;
        layer->gpu_change[g] = -layer->gpu_load[g];
    }
    eplb_sort_descending(d->by_load, gpus, layer->gpu_change, layer->aside);
    d->mean = total / (double)gpus;
}

/* Finds a swap of the heaviest GPU, the lightest partners first. */
static swap find_swap(const descent *d)
{
    eplb_layer *layer = d->layer;
    int32_t last = layer->shape->gpus - 1;
    int32_t heavy = d->by_load[last];
    double worst = layer->gpu_load[heavy];
    double good = d->mean + (worst - d->mean) * (1.0 - GOOD_PART);
    /* A gain below rounding could be undone by the next swap, for ever. */
    swap best = {.place = -1, .worst = worst * (1.0 - EPLB_ROUNDING)};
    for (int32_t place = 0; place < last && best.worst > good; place++) {
        int32_t light = d->by_load[place];
        if ((worst + layer->gpu_load[light]) / 2.0 >= best.worst) {
            break; /* and heavier ones can do no better */
        }
        scan_pair(d, heavy, place, &best);
        layer->moves += layer->shape->first_slot[light + 1] - layer->shape->first_slot[light];
    }
    return best;
}

void eplb_layer_swap_descent(eplb_layer *layer, double enough)
{
    int32_t last = layer->shape->gpus - 1;
    descent d = {.layer = layer, .slot_share = layer->key, .by_load = layer->heap};
    sort_slots(&d);
    sort_gpus(&d);
    int64_t budget = layer->moves + (int64_t)MOVES_PER_SLOT * layer->shape->slots;
    while (layer->gpu_load[d.by_load[last]] > enough && layer->moves < budget) {
        swap best = find_swap(&d);
        if (best.place < 0) {
            break;
        }
        int32_t heavy = d.by_load[last];
        apply(&d, heavy, d.by_load[best.place], &best);
        reorder_gpu(&d, best.place);
        /* The light one may have passed the heavy one, which is then next to last. */
        reorder_gpu(&d, d.by_load[last] == heavy ? last : last - 1);
    }
}
