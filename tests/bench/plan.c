/* SPDX-License-Identifier: MIT */
/*
 * The planner beside the classical algorithm, in one run: five shapes of 256 experts, real loads of
 * DeepSeek-V3 where they lie beside the checkout, else synthetic ones alike. Times are the best of
 * several runs on one thread, in microseconds a layer; imbalance is the mean over layers, averaged
 * over the loads, and the largest such mean.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <eplb/eplb.h>

#include "workloads.h"

#define RUNS 5
#define LAYERS 58
#define EXPERTS 256

static int32_t read_loads(eplb_load **loads)
{
    eplb_error error;
    for (int32_t i = 0; i < BENCH_WORKLOADS; i++) {
        bench_path path = bench_workload(i);
        if (!bench_is_there(&path)) {
            return i;
        }
        const char *paths[] = {path.text};
        bench_check(eplb_source_load(&loads[i], NULL, paths, 1, NULL, NULL, &error), &error);
    }
    return BENCH_WORKLOADS;
}

static int32_t draw_loads(eplb_load **loads)
{
    eplb_error error;
    eplb_random random;
    eplb_random_seed(&random, 1);
    for (int32_t i = 0; i < BENCH_WORKLOADS; i++) {
        bench_check(eplb_load_create(&loads[i], NULL, 1, LAYERS, EXPERTS, &error), &error);
        for (int32_t l = 0; l < LAYERS; l++) {
            double row[EXPERTS];
            double sigma = 0.56 + 0.30 * l / LAYERS;
            for (int32_t e = 0; e < EXPERTS; e++) {
                row[e] = floor(1e5 * exp(sigma * bench_normal(&random)));
            }
            bench_check(eplb_load_set_row(loads[i], 0, l, row, &error), &error);
        }
    }
    return BENCH_WORKLOADS;
}

typedef struct result {
    double microseconds; /* a layer */
    double mean;
    double largest;
    double bound;
    int64_t moves; /* a layer */
    bool valid;
} result;

static result measure(eplb_load *const *loads, int32_t count, const eplb_cluster *cluster,
                      const eplb_plan_options *options)
{
    eplb_error error;
    result r = {.valid = true};
    int64_t layers = 0;
    for (int32_t i = 0; i < count; i++) {
        double best = INFINITY;
        eplb_plan_info info = {.struct_size = sizeof(info)};
        for (int run = 0; run < RUNS; run++) {
            eplb_plan *plan;
            double start = bench_seconds(CLOCK_MONOTONIC);
            bench_check(eplb_plan_create(&plan, NULL, loads[i], cluster, NULL, options, &error),
                        &error);
            double taken = bench_seconds(CLOCK_MONOTONIC) - start;
            best = taken < best ? taken : best;
            bench_check(eplb_plan_get_info(plan, &info, &error), &error);
            eplb_plan_destroy(&plan);
        }
        layers += info.layers;
        r.microseconds += 1e6 * best;
        r.mean += info.imbalance_after_mean / count;
        r.bound += info.lower_bound_mean / count;
        r.largest = fmax(r.largest, info.imbalance_after_mean);
        r.moves += info.moves;
        r.valid = r.valid && info.valid;
    }
    r.microseconds /= (double)layers;
    r.moves /= layers;
    return r;
}

static void print_row(const char *name, const result *r, const result *reference)
{
    printf("  %-10s %10.1f %8.2fx %12.6f %12.6f %12.6f %10lld%s\n", name, r->microseconds,
           r->microseconds / reference->microseconds, r->mean, r->largest, r->bound,
           (long long)r->moves, r->valid ? "" : "  INVALID");
}

int main(void)
{
    static const int32_t shapes[][2] = {{288, 32}, {320, 64}, {288, 72}, {288, 96}, {288, 144}};
    eplb_load *loads[BENCH_WORKLOADS] = {NULL};
    int32_t count = read_loads(loads);
    bool real = count == BENCH_WORKLOADS;
    count = real ? count : draw_loads(loads);
    printf("%d %s loads of %d layers x %d experts, one thread, best of %d runs\n", count,
           real ? "real DeepSeek-V3" : "synthetic", eplb_load_layers(loads[0]),
           eplb_load_experts(loads[0]), RUNS);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        eplb_error error;
        eplb_cluster *cluster;
        bench_check(eplb_cluster_create(&cluster, NULL, shapes[i][1], shapes[i][0] / shapes[i][1],
                                        0, &error),
                    &error);
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        result plan = measure(loads, count, cluster, &options);
        options.effort = 1;
        result quick = measure(loads, count, cluster, &options);
        options.algorithm = EPLB_ALGORITHM_EPLB;
        result reference = measure(loads, count, cluster, &options);
        printf("\n%d slots on %d GPUs\n  %-10s %10s %9s %12s %12s %12s %10s\n", shapes[i][0],
               shapes[i][1], "", "us/layer", "", "imbalance", "largest", "bound", "moves");
        print_row("default", &plan, &reference);
        print_row("effort 1", &quick, &reference);
        print_row("eplb", &reference, &reference);
        eplb_cluster_destroy(&cluster);
    }
    for (int32_t i = 0; i < BENCH_WORKLOADS; i++) {
        eplb_load_destroy(&loads[i]);
    }
    return EXIT_SUCCESS;
}
