/* SPDX-License-Identifier: MIT */
/*
 * From token counts in memory to a placement, in C.
 *
 *     cc plan.c $(pkg-config --cflags --libs eplb) -o plan && ./plan
 */
#include <stdio.h>
#include <stdlib.h>

#include <eplb/eplb.h>

static void check(eplb_status status, const eplb_error *error)
{
    if (status != EPLB_OK) {
        fprintf(stderr, "plan: %s\n", error->message);
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    /* Tokens that each of 8 experts of one layer got; 4 GPUs with room for 3 experts each. */
    static const double counts[8] = {600, 560, 120, 120, 20, 10, 10, 10};
    eplb_error error;
    eplb_load *load;
    eplb_cluster *cluster;
    eplb_plan *plan;
    check(eplb_load_create(&load, NULL, 1, 1, 8, &error), &error);
    check(eplb_load_set_row(load, 0, 0, counts, &error), &error);
    check(eplb_cluster_create(&cluster, NULL, 4, 3, 0, &error), &error);
    check(eplb_plan_create(&plan, NULL, load, cluster, NULL, NULL, &error), &error);

    const int32_t *slots = eplb_placement_row(eplb_plan_placement(plan), 0);
    for (int gpu = 0; gpu < 4; gpu++, slots += 3) {
        printf("GPU %d: experts %d %d %d\n", gpu, slots[0], slots[1], slots[2]);
    }
    eplb_plan_info info = {.struct_size = sizeof(info)};
    check(eplb_plan_get_info(plan, &info, &error), &error);
    printf("busiest GPU: %.3f of the mean, at best %.3f\n", info.imbalance_after_mean,
           info.lower_bound_mean);

    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
    return EXIT_SUCCESS;
}
