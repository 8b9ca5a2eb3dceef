/* SPDX-License-Identifier: MIT */
/* Fewest copies from a plan for one real workload to another's, 288 slots on 32 GPUs: layers of
 * all 72 ordered pairs of nine, or of every n-th pair. Usage: bench-fewest [nodes [n]] */
#include "workloads.h"

#include <eplb/ilp.h>

#define TARGET 1.05
#define STEP 29 /* of the layers of a pair, from one that differs from pair to pair */

typedef struct tally {
    int32_t layers;
    int32_t reached;
    int64_t copies;
    int64_t start_copies;
    double seconds;
} tally;

static eplb_load *one_workload(const eplb_load *all, int32_t index)
{
    eplb_error error;
    eplb_load *load;
    bench_check(
        eplb_load_create(&load, NULL, 1, eplb_load_layers(all), eplb_load_experts(all), &error),
        &error);
    for (int32_t l = 0; l < eplb_load_layers(all); l++) {
        bench_check(eplb_load_set_row(load, 0, l, eplb_load_row(all, index, l), &error), &error);
    }
    return load;
}

static void add(tally *sum, const eplb_ilp *ilp, const eplb_fewest_task *task)
{
    eplb_error error;
    eplb_placement *placement;
    eplb_fewest_result result = {.struct_size = sizeof(result)};
    double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    bench_check(eplb_ilp_fewest_copies(ilp, &placement, task, &result, &error), &error);
    sum->seconds += bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    sum->layers++;
    sum->copies += result.copies;
    sum->reached += result.verdict <= EPLB_FEWEST_REACHED ? 1 : 0;
    if (task->start != NULL) {
        int64_t copies;
        bench_check(eplb_placement_copies(task->current, task->start, task->layer, &copies, &error),
                    &error);
        sum->start_copies += copies;
    }
    eplb_placement_destroy(&placement);
}

static void add_pair(tally *alone, tally *from_plan, const eplb_ilp *ilp, const eplb_plan *current,
                     const eplb_load *load, const eplb_plan *fresh, int32_t first)
{
    eplb_fewest_task task;
    eplb_fewest_task_init(&task);
    task.target = TARGET;
    task.current = eplb_plan_placement(current);
    task.cluster = eplb_placement_cluster(task.current);
    task.load = load;
    for (int32_t l = first; l < eplb_load_layers(load); l += STEP) {
        task.current_row = l;
        task.start_row = l;
        task.layer = l;
        task.start = NULL;
        add(alone, ilp, &task);
        task.start = eplb_plan_placement(fresh);
        add(from_plan, ilp, &task);
    }
}

static void print(const char *name, const tally *t)
{
    printf("  %-22s%6d of %d%12.1f%12.2f%12.2f\n", name, t->reached, t->layers,
           (double)t->start_copies / t->layers, (double)t->copies / t->layers,
           t->seconds / t->layers);
}

static void run(const eplb_load *all, int64_t nodes, int32_t every)
{
    eplb_error error;
    eplb_ilp_options options;
    eplb_ilp_options_init(&options);
    options.nodes = nodes > 0 ? nodes : options.nodes;
    eplb_ilp *ilp;
    eplb_cluster *cluster;
    bench_check(eplb_ilp_create(&ilp, NULL, &options, &error), &error);
    bench_check(eplb_cluster_create(&cluster, NULL, 32, 9, 0, &error), &error);
    eplb_load *load[BENCH_WORKLOADS];
    eplb_plan *plan[BENCH_WORKLOADS];
    for (int32_t k = 0; k < BENCH_WORKLOADS; k++) {
        load[k] = one_workload(all, k);
        bench_check(eplb_plan_create(&plan[k], NULL, load[k], cluster, NULL, NULL, &error), &error);
    }
    tally alone = {0};
    tally from_plan = {0};
    for (int32_t p = 0; p < BENCH_WORKLOADS * BENCH_WORKLOADS; p++) {
        int32_t a = p / BENCH_WORKLOADS;
        int32_t b = p % BENCH_WORKLOADS;
        if (a != b && p % every == 0) {
            add_pair(&alone, &from_plan, ilp, plan[a], load[b], plan[b], p * 7 % STEP);
        }
    }
    printf("target %.2f, %lld nodes a layer, one thread; means over the layers\n", TARGET,
           (long long)options.nodes);
    printf("                        reached       start      copies       CPU s\n");
    print("from the current", &alone);
    print("from a fresh plan", &from_plan);
    for (int32_t k = 0; k < BENCH_WORKLOADS; k++) {
        eplb_plan_destroy(&plan[k]);
        eplb_load_destroy(&load[k]);
    }
    eplb_cluster_destroy(&cluster);
    eplb_ilp_destroy(&ilp);
}

int main(int argc, char **argv)
{
    eplb_load *all = bench_read_workloads();
    if (all == NULL) {
        printf("no recordings\n");
        return BENCH_SKIPPED;
    }
    int64_t nodes = argc > 1 ? strtoll(argv[1], NULL, 10) : 0;
    int32_t every = argc > 2 ? (int32_t)strtol(argv[2], NULL, 10) : 1;
    run(all, nodes, every > 0 ? every : 1);
    eplb_load_destroy(&all);
    return EXIT_SUCCESS;
}
