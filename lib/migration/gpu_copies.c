/* SPDX-License-Identifier: MIT */
/* Who sends and who gets the copies between two placements. */
#include <eplb/price.h>

#include <stdbool.h>

static bool holds(const eplb_placement *placement, int32_t layer, int32_t gpu, int32_t expert,
                  int32_t slots)
{
    const int32_t *row = eplb_placement_row(placement, layer) +
                         eplb_cluster_first_slot(eplb_placement_cluster(placement), gpu);
    for (int32_t s = 0; s < slots; s++) {
        if (row[s] == expert) {
            return true;
        }
    }
    return false;
}

static bool holds_anywhere(const eplb_placement *placement, int32_t layer, int32_t gpu,
                           int32_t expert)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    return holds(placement, layer, gpu, expert, eplb_cluster_gpu_slots(cluster, gpu));
}

/* The GPU that an expert is copied from; -1: none that is alive has it. */
static int32_t find_source(const eplb_placement *from, const eplb_cluster *cluster, int32_t layer,
                           int32_t expert, int32_t target, const eplb_gpu_copies *copies)
{
    const eplb_cluster *old = eplb_placement_cluster(from);
    int32_t node = eplb_cluster_gpu_node(cluster, target);
    int32_t best = -1;
    bool best_is_near = false;
    for (int32_t g = 0; g < eplb_cluster_gpus(cluster); g++) {
        if (!eplb_cluster_gpu_alive(cluster, g) || !eplb_cluster_gpu_alive(old, g) ||
            !holds_anywhere(from, layer, g, expert)) {
            continue;
        }
        bool is_near = eplb_cluster_gpu_node(cluster, g) == node;
        bool is_idler = best < 0 || (is_near ? copies[g].sent_intra < copies[best].sent_intra
                                             : copies[g].sent_inter < copies[best].sent_inter);
        if (is_near == best_is_near ? is_idler : is_near) {
            best = g;
            best_is_near = is_near;
        }
    }
    return best;
}

static void add_copy(const eplb_placement *from, const eplb_cluster *cluster, int32_t layer,
                     int32_t expert, int32_t target, eplb_gpu_copies *copies, int64_t *from_storage)
{
    int32_t source = find_source(from, cluster, layer, expert, target, copies);
    if (source < 0) {
        copies[target].received_inter++;
        *from_storage += 1;
    } else if (eplb_cluster_gpu_node(cluster, source) == eplb_cluster_gpu_node(cluster, target)) {
        copies[target].received_intra++;
        copies[source].sent_intra++;
    } else {
        copies[target].received_inter++;
        copies[source].sent_inter++;
    }
}

/* Copies into one GPU; of second replicas there only the first is one. */
static void add_gpu(const eplb_placement *from, const eplb_placement *to, int32_t layer,
                    int32_t gpu, eplb_gpu_copies *copies, int64_t *from_storage)
{
    const eplb_cluster *cluster = eplb_placement_cluster(to);
    const int32_t *row = eplb_placement_row(to, layer) + eplb_cluster_first_slot(cluster, gpu);
    for (int32_t s = 0; s < eplb_cluster_gpu_slots(cluster, gpu); s++) {
        if (row[s] >= 0 && !holds_anywhere(from, layer, gpu, row[s]) &&
            !holds(to, layer, gpu, row[s], s)) {
            add_copy(from, cluster, layer, row[s], gpu, copies, from_storage);
        }
    }
}

eplb_status eplb_gpu_copies_add(const eplb_placement *from, const eplb_placement *to, int32_t layer,
                                eplb_gpu_copies *copies, int64_t *from_storage, eplb_error *error)
{
    int64_t count; /* checks what has to match */
    eplb_status status = copies != NULL
                             ? eplb_placement_copies(from, to, layer, &count, error)
                             : eplb_error_set(error, EPLB_ERROR_ARGUMENT, "copies: no output");
    if (status != EPLB_OK) {
        return status;
    }
    int64_t stored = 0;
    for (int32_t g = 0; g < eplb_cluster_gpus(eplb_placement_cluster(to)); g++) {
        add_gpu(from, to, layer, g, copies, &stored);
    }
    if (from_storage != NULL) {
        *from_storage += stored;
    }
    return EPLB_OK;
}
