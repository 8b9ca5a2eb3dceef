/* SPDX-License-Identifier: MIT */
/*
 * The placement that weights balance perfectly. G live GPUs with S slots each, at most G(S-1)
 * experts; T = load of all / G. Fill up with items without load to G(S-1) and sort: a_1 <= a_2 <=
 * ... Let A_i be the load of the window of the S-1 items from a_i on.
 *
 * While GPUs are to fill, some i has A_i <= T <= A_(i+1), where a_(i+S-1) is the item that enters:
 * the items make as many disjoint windows as there are GPUs, T is those windows' mean, A_i rises
 * with i, so the first is at most T and the last at least T. The GPU gets window i and T - A_i
 * tokens of the item that enters. It has as many, for
 *
 *     A_(i+1) = A_i - a_i + a_(i+S-1) >= T,  hence  a_(i+S-1) - (T - A_i) >= a_i >= 0.
 *
 * What is left of it, at least a_i and at most a_(i+S-1), keeps its place in the order. So there
 * are (G-1)(S-1) sorted items of load (G-1)T left: the same with one GPU less. The last GPU gets
 * the S-1 items that are left, which weigh T.
 *
 * A GPU gets items that are different experts. What remains is an item of its own and goes to other
 * GPUs. So no expert is twice on a GPU, each is on one at least, and slots that hold no expert -
 * items without load that were filled in, the last GPU's last slot - take any that the GPU lacks.
 *
 * The next i is at most the gap that a window leaves: windows on its right weigh at least A_(i+1)
 * of before, but for the one with what is left of an item. And it is at most S-1 items on the left
 * of the gap, for windows that end there weigh at most A_i of before. So one look at the items is
 * enough.
 */
#include <eplb/shares.h>

#include <stdbool.h>

#include "base/memory.h"
#include "base/range.h"
#include "base/sort.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "model/row.h"
#include "model/share_flow.h"

/* Items are item[0..left-1] and item[right..count-1]; those between are placed. */
typedef struct packing {
    const eplb_placement *placement;
    const eplb_cluster *cluster;
    int32_t layer;
    int32_t experts;
    int32_t window; /* S-1 */
    int32_t count;
    int32_t left;
    int32_t right;
    int32_t *item;  /* [count] experts, -1: filled in */
    double *tokens; /* [count] that are left of them, by T */
    bool has_load;
    int32_t *row;     /* [slots] */
    int32_t *holder;  /* [experts] the last GPU that got the expert, or -1 */
    int32_t *order;   /* [experts] largest load first */
    int32_t *scratch; /* [experts] */
    double *load;     /* [experts], by T */
    int32_t next;     /* in `order`, for slots that hold no expert */
} packing;

static int32_t first_live_gpu(const eplb_cluster *cluster)
{
    int32_t gpu = 0;
    while (!cluster->gpu[gpu].alive) {
        gpu++;
    }
    return gpu;
}

static eplb_status init(packing *p, const eplb_placement *placement, int32_t layer,
                        const double *loads, eplb_error *error)
{
    int32_t live = eplb_cluster_live_gpus(placement->cluster);
    int32_t first = first_live_gpu(placement->cluster);
    *p = (packing){.placement = placement,
                   .cluster = placement->cluster,
                   .layer = layer,
                   .experts = placement->experts,
                   .window = eplb_placement_open_slots_on(placement, layer, first) - 1};
    p->count = live * p->window;
    size_t experts = (size_t)p->experts;
    const eplb_array arrays[] = {
        EPLB_ARRAY(p->item, (size_t)p->count),
        EPLB_ARRAY(p->tokens, (size_t)p->count),
        EPLB_ARRAY(p->row, (size_t)placement->slots),
        EPLB_ARRAY(p->holder, experts),
        EPLB_ARRAY(p->order, experts),
        EPLB_ARRAY(p->scratch, experts),
        EPLB_ARRAY(p->load, experts),
    };
    eplb_status status =
        eplb_alloc_arrays(&placement->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_loads_by_mean(loads, p->experts, live, p->load);
    for (int32_t e = 0; e < p->experts; e++) {
        p->order[e] = e;
        p->holder[e] = -1;
        p->has_load = p->has_load || loads[e] > 0.0;
    }
    eplb_sort_descending(p->order, p->experts, p->load, p->scratch);
    for (int32_t i = 0; i < p->count; i++) {
        int32_t place = p->count - 1 - i;
        p->item[i] = place < p->experts ? p->order[place] : -1;
        p->tokens[i] = place < p->experts ? p->load[p->order[place]] : 0.0;
    }
    return EPLB_OK;
}

static void free_arrays(packing *p, const eplb_hooks *hooks)
{
    void *arrays[] = {p->item, p->tokens, p->row, p->holder, p->order, p->scratch, p->load};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(hooks, arrays[i]);
    }
}

/* Where in the arrays the item is that is the k-th, from 0, of those left. */
static int32_t place_of(const packing *p, int32_t k)
{
    return k < p->left ? k : k + p->right - p->left;
}

/* The last window that weighs at most T and has an item behind it; `sum`: its load. */
static int32_t find_window(const packing *p, double *sum)
{
    int32_t items = p->left + p->count - p->right;
    int32_t first = p->left > p->window ? p->left - p->window : 0;
    *sum = 0.0;
    for (int32_t k = first; k < first + p->window; k++) {
        *sum += p->tokens[place_of(p, k)];
    }
    while (first + p->window + 1 < items) {
        double next =
            *sum - p->tokens[place_of(p, first)] + p->tokens[place_of(p, first + p->window)];
        if (next > 1.0) {
            break;
        }
        *sum = next;
        first++;
    }
    return first;
}

/* Makes the k-th item that is left the first behind the gap. */
static void move_gap(packing *p, int32_t k)
{
    for (; p->left < k; p->left++, p->right++) {
        p->item[p->left] = p->item[p->right];
        p->tokens[p->left] = p->tokens[p->right];
    }
    for (; p->left > k; p->left--, p->right--) {
        p->item[p->right - 1] = p->item[p->left - 1];
        p->tokens[p->right - 1] = p->tokens[p->left - 1];
    }
}

/* Any expert that the GPU lacks, one after another. */
static int32_t next_filler(packing *p, int32_t gpu)
{
    int32_t expert;
    do {
        expert = p->order[p->next];
        p->next = p->next + 1 < p->experts ? p->next + 1 : 0;
    } while (p->holder[expert] == gpu);
    return expert;
}

/* Puts items into the GPU's slots, the real ones first: only then it is known what it lacks. */
static void fill_slots(packing *p, int32_t gpu, const int32_t *items, int32_t count)
{
    int32_t slot = p->cluster->first_slot[gpu];
    for (int32_t i = 0; i < count; i++) {
        if (items[i] >= 0) {
            p->holder[items[i]] = gpu;
            p->row[slot++] = items[i];
        }
    }
    for (; slot < eplb_placement_open_end(p->placement, p->layer, gpu); slot++) {
        p->row[slot] = next_filler(p, gpu);
        p->holder[p->row[slot]] = gpu;
    }
}

static void fill_gpu(packing *p, int32_t gpu)
{
    double sum;
    move_gap(p, find_window(p, &sum));
    const int32_t *items = p->item + p->right;
    p->right += p->window;
    if (p->right == p->count) {
        fill_slots(p, gpu, items, p->window);
        return;
    }
    fill_slots(p, gpu, items, p->window + 1);
    double rest = p->tokens[p->right] - (1.0 - sum);
    p->tokens[p->right] = rest > 0.0 ? rest : 0.0;
}

static void place(packing *p)
{
    for (int32_t s = 0; s < p->placement->slots; s++) {
        p->row[s] = -1;
    }
    for (int32_t g = 0; g < p->cluster->gpus; g++) {
        if (p->cluster->gpu[g].alive && p->has_load) {
            fill_gpu(p, g);
        } else if (p->cluster->gpu[g].alive) {
            fill_slots(p, g, NULL, 0);
        }
    }
}

static eplb_status check(const eplb_placement *placement, int32_t layer, const double *loads,
                         eplb_error *error)
{
    eplb_status status = eplb_check_given("shares", "placement", placement, error);
    if (status == EPLB_OK) {
        status = eplb_check_range("shares", "layer", layer, 0, placement->layers - 1, error);
    }
    if (status == EPLB_OK) {
        status = eplb_check_given("shares", "expert loads", loads, error);
    }
    if (status == EPLB_OK) {
        status = eplb_row_check("expert loads", placement->layer_ids.ids[layer], loads,
                                placement->experts, error);
    }
    return status == EPLB_OK ? eplb_placement_check_fits(placement, layer, error) : status;
}

static eplb_status check_room(const eplb_placement *placement, int32_t layer, eplb_error *error)
{
    const eplb_cluster *cluster = placement->cluster;
    int32_t experts = placement->experts;
    int32_t live = eplb_cluster_live_gpus(cluster);
    int32_t first = first_live_gpu(cluster);
    int32_t slots = eplb_placement_open_slots_on(placement, layer, first);
    for (int32_t g = first; g < cluster->gpus; g++) {
        int32_t own = eplb_placement_open_slots_on(placement, layer, g);
        if (cluster->gpu[g].alive && own != slots) {
            return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                                  "layer %d: weights balance any load perfectly only where the %d "
                                  "live GPUs have equally many slots: GPU %d has %d, GPU %d has %d",
                                  placement->layer_ids.ids[layer], live, first, slots, g, own);
        }
    }
    if (experts > (int64_t)live * (slots - 1)) {
        long long enough = eplb_fewest_slots(experts, live) + live;
        return eplb_error_set(
            error, EPLB_ERROR_INFEASIBLE,
            "%d slots on %d live GPUs: weights balance any load of at most %d "
            "experts perfectly, not of %d: %lld slots (%lld redundant) are enough",
            slots * live, live, live * (slots - 1), experts, enough, enough - experts);
    }
    return EPLB_OK;
}

/* Weights [slots] of the row that was made. */
static eplb_status weigh(const packing *p, const eplb_placement *placement, int32_t layer,
                         const double *loads, double *weights, eplb_error *error)
{
    eplb_share_flow flow;
    eplb_status status = eplb_share_flow_init(&flow, placement, layer, p->row, loads, error);
    if (status == EPLB_OK) {
        eplb_share_flow_balance(&flow);
        eplb_share_flow_weights(&flow, weights);
    }
    eplb_share_flow_free(&flow, placement);
    return status;
}

eplb_status eplb_shares_place(eplb_placement *placement, int32_t layer, const double *expert_loads,
                              double *weights, eplb_error *error)
{
    eplb_status status = check(placement, layer, expert_loads, error);
    if (status == EPLB_OK) {
        status = check_room(placement, layer, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    packing p;
    status = init(&p, placement, layer, expert_loads, error);
    if (status == EPLB_OK) {
        place(&p);
        if (weights != NULL) {
            status = weigh(&p, placement, layer, expert_loads, weights, error);
        }
    }
    if (status == EPLB_OK) {
        memcpy(eplb_placement_row_of(placement, layer), p.row,
               (size_t)placement->slots * sizeof(*p.row));
    }
    free_arrays(&p, &placement->hooks);
    return status;
}
