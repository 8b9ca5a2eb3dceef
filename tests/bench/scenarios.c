/* SPDX-License-Identifier: MIT */
/*
 * Plans for several scenarios beside the plan of their sum, in one run: nine workloads of
 * DeepSeek-V3 where they lie beside the checkout, else synthetic ones alike, and two larger shapes
 * with 16 synthetic scenarios. Time is the processor's, one thread; memory is the most that the
 * planner's hooks had given out at once, the plan with it and the load without; imbalance is the
 * mean over scenarios and layers, and so is the bound.
 */
#include <math.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <eplb/eplb.h>

#include "workloads.h"

/* Memory that hooks gave out: each block has its size in front. */
typedef struct memory {
    size_t live;
    size_t most;
} memory;

#define HEAD alignof(max_align_t)

static void *note(memory *m, void *block, size_t size)
{
    if (block == NULL) {
        return NULL;
    }
    *(size_t *)block = size;
    m->live += size;
    m->most = m->live > m->most ? m->live : m->most;
    return (char *)block + HEAD;
}

static void *allocate(void *context, size_t size)
{
    return note(context, malloc(size + HEAD), size);
}

static void *reallocate(void *context, void *block, size_t size)
{
    memory *m = context;
    char *old = (char *)block - HEAD;
    size_t old_size = *(size_t *)old;
    char *larger = realloc(old, size + HEAD);
    m->live -= larger != NULL ? old_size : 0;
    return note(m, larger, size);
}

static void release(void *context, void *block)
{
    memory *m = context;
    char *old = (char *)block - HEAD;
    m->live -= *(size_t *)old;
    free(old);
}

static eplb_hooks counting_hooks(memory *m)
{
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    hooks.allocate = allocate;
    hooks.reallocate = reallocate;
    hooks.release = release;
    hooks.memory_context = m;
    return hooks;
}

/* Lognormal loads: skew grows with depth, and each scenario drifts from the common load. */
static eplb_load *draw_load(int32_t scenarios, int32_t layers, int32_t experts)
{
    eplb_error error;
    eplb_load *load;
    eplb_random random;
    eplb_random_seed(&random, 1);
    bench_check(eplb_load_create(&load, NULL, scenarios, layers, experts, &error), &error);
    double *common = bench_alloc((size_t)experts, sizeof(*common));
    double *row = bench_alloc((size_t)experts, sizeof(*row));
    for (int32_t l = 0; l < layers; l++) {
        for (int32_t e = 0; e < experts; e++) {
            common[e] = (0.56 + 0.30 * l / layers) * bench_normal(&random);
        }
        for (int32_t k = 0; k < scenarios; k++) {
            for (int32_t e = 0; e < experts; e++) {
                row[e] = floor(1e5 * exp(common[e] + 0.35 * bench_normal(&random)));
            }
            bench_check(eplb_load_set_row(load, k, l, row, &error), &error);
        }
    }
    free(row);
    free(common);
    return load;
}

typedef struct result {
    double cpu_seconds;
    double imbalance;
    double bound; /* of plans for scenarios: of their objective */
    double mebibytes;
} result;

/* Mean over scenarios and layers. */
static double imbalance_of(const eplb_placement *placement, const eplb_load *load)
{
    double mean = 0.0;
    int32_t layers = eplb_load_layers(load);
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        for (int32_t l = 0; l < layers; l++) {
            eplb_error error;
            double imbalance;
            bench_check(eplb_placement_imbalance(placement, l, eplb_load_row(load, k, l),
                                                 &imbalance, &error),
                        &error);
            mean += imbalance / layers / eplb_load_scenarios(load);
        }
    }
    return mean;
}

static result measure(const eplb_load *load, const eplb_cluster *cluster, int32_t objective,
                      int32_t algorithm)
{
    eplb_error error;
    eplb_plan *plan;
    eplb_plan_options options;
    memory m = {0};
    eplb_hooks hooks = counting_hooks(&m);
    eplb_plan_options_init(&options);
    options.objective = objective;
    options.algorithm = algorithm;
    double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    bench_check(eplb_plan_create(&plan, &hooks, load, cluster, NULL, &options, &error), &error);
    result r = {.cpu_seconds = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start};
    eplb_plan_info info = {.struct_size = sizeof(info)};
    bench_check(eplb_plan_get_info(plan, &info, &error), &error);
    r.imbalance = imbalance_of(eplb_plan_placement(plan), load);
    r.bound = info.lower_bound_mean;
    r.mebibytes = (double)m.most / (1 << 20);
    eplb_plan_destroy(&plan);
    bench_require(m.live == 0, "memory was not given back");
    return r;
}

static void print_row(const char *name, const result *r, const result *classical, double bound)
{
    printf("  %-18s %9.3f %9.1fx %10.4f %10.4f %10.1f\n", name, r->cpu_seconds,
           r->cpu_seconds / classical->cpu_seconds, r->imbalance, bound, r->mebibytes);
    fflush(stdout);
}

/* Returns the memory of the plan for scenarios. */
static double compare(const eplb_load *load, int32_t slots, int32_t gpus)
{
    eplb_error error;
    eplb_cluster *cluster;
    bench_check(eplb_cluster_create(&cluster, NULL, gpus, slots / gpus, 0, &error), &error);
    printf("\n%d scenarios of %d layers x %d experts, %d slots on %d GPUs\n  %-18s %9s %10s %10s "
           "%10s %10s\n",
           eplb_load_scenarios(load), eplb_load_layers(load), eplb_load_experts(load), slots, gpus,
           "", "CPU s", "", "imbalance", "bound", "MiB");
    result plan = measure(load, cluster, EPLB_OBJECTIVE_MEAN_OF_MAX, EPLB_ALGORITHM_SEARCH);
    result sum = measure(load, cluster, EPLB_OBJECTIVE_SUM, EPLB_ALGORITHM_SEARCH);
    result classical = measure(load, cluster, EPLB_OBJECTIVE_SUM, EPLB_ALGORITHM_EPLB);
    print_row("mean-of-max", &plan, &classical, plan.bound);
    print_row("plan of the sum", &sum, &classical, plan.bound);
    print_row("eplb, of the sum", &classical, &classical, plan.bound);
    eplb_cluster_destroy(&cluster);
    return plan.mebibytes;
}

#define MOST_MEBIBYTES 64.0 /* of the largest shape */

int main(void)
{
    eplb_load *workloads = bench_read_workloads();
    printf("%s workloads, default effort, one thread; times beside the classical algorithm's\n",
           workloads != NULL ? "real DeepSeek-V3" : "synthetic");
    if (workloads == NULL) {
        workloads = draw_load(BENCH_WORKLOADS, 58, 256);
    }
    (void)compare(workloads, 288, 32);
    (void)compare(workloads, 288, 72);
    (void)compare(workloads, 288, 96);
    (void)compare(workloads, 288, 144);
    eplb_load_destroy(&workloads);

    eplb_load *large = draw_load(16, 61, 384);
    (void)compare(large, 432, 72);
    eplb_load_destroy(&large);

    large = draw_load(16, 96, 1024);
    double mebibytes = compare(large, 1280, 320);
    eplb_load_destroy(&large);
    if (mebibytes > MOST_MEBIBYTES) {
        printf("FAILED: %.1f MiB, at most %.0f allowed\n", mebibytes, MOST_MEBIBYTES);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
