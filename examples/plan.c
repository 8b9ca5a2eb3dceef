/* SPDX-License-Identifier: MIT */
/*
 * From token counts in memory to a placement, in C.
 *
 *     cc plan.c $(pkg-config --cflags --libs eplb) -o plan && ./plan
 */
#include <stdio.h>

#include <eplb/eplb.h>

int main(void)
{
    /* Tokens that each of 8 experts of one layer got; expert 0 is hot. */
    static const double counts[8] = {600, 560, 120, 120, 20, 10, 10, 10};
    eplb_error error;
    eplb_load *load = NULL;
    eplb_cluster *cluster = NULL;
    eplb_plan *plan = NULL;

    eplb_status status = eplb_load_create(&load, NULL, 1, 1, 8, &error);
    if (status == EPLB_OK) {
        status = eplb_load_set_row(load, 0, 0, counts, &error);
    }
    if (status == EPLB_OK) { /* 4 GPUs on one node, room for 3 experts on each */
        status = eplb_cluster_create(&cluster, NULL, 4, 3, 0, &error);
    }
    if (status == EPLB_OK) {
        status = eplb_plan_create(&plan, NULL, load, cluster, NULL, NULL, &error);
    }
    if (status == EPLB_OK) {
        eplb_plan_info info = {.struct_size = sizeof(info)};
        eplb_plan_get_info(plan, &info, &error);
        const int32_t *slots = eplb_placement_row(eplb_plan_placement(plan), 0);
        for (int gpu = 0; gpu < 4; gpu++) {
            printf("GPU %d: experts %d %d %d\n", gpu, slots[3 * gpu], slots[3 * gpu + 1],
                   slots[3 * gpu + 2]);
        }
        printf("busiest GPU: %.3f of the mean, at best %.3f\n", info.imbalance_after_mean,
               info.lower_bound_mean);
    } else {
        fprintf(stderr, "plan: %s\n", error.message);
    }
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
    return status == EPLB_OK ? 0 : 1;
}
