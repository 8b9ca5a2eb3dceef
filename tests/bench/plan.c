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
#include <time.h>
#include <unistd.h>

#include <eplb/eplb.h>
#include <eplb/source.h>

#include "../shared.h"

#define RUNS 5
#define MOST_LOADS 9
#define LAYERS 58
#define EXPERTS 256

static const char *const files[MOST_LOADS] = {
    "decode_in1000out1000",  "decode_in2000out100", "decode_in500out1500",
    "prefill_in1000out1000", "prefill_in1024",      "prefill_in1800out100",
    "prefill_in2000out100",  "prefill_in2048",      "prefill_in512",
};

static void check(eplb_status status, const eplb_error *error)
{
    if (status != EPLB_OK) {
        fprintf(stderr, "bench: %s\n", error->message);
        exit(EXIT_FAILURE);
    }
}

static int32_t read_loads(eplb_load **loads)
{
    eplb_error error;
    for (int32_t i = 0; i < MOST_LOADS; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/data/deepseek_v3/%s.json", test_shared_directory(),
                 files[i]);
        if (access(path, R_OK) != 0) {
            return i;
        }
        const char *paths[] = {path};
        check(eplb_source_load(&loads[i], NULL, paths, 1, NULL, NULL, &error), &error);
    }
    return MOST_LOADS;
}

/* Near enough to normal for a benchmark: twelve uniform numbers. */
static double normal(eplb_random *random)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++) {
        sum += eplb_random_unit(random);
    }
    return sum;
}

static int32_t draw_loads(eplb_load **loads)
{
    eplb_error error;
    eplb_random random;
    eplb_random_seed(&random, 1);
    for (int32_t i = 0; i < MOST_LOADS; i++) {
        check(eplb_load_create(&loads[i], NULL, 1, LAYERS, EXPERTS, &error), &error);
        for (int32_t l = 0; l < LAYERS; l++) {
            double row[EXPERTS];
            double sigma = 0.56 + 0.30 * l / LAYERS;
            for (int32_t e = 0; e < EXPERTS; e++) {
                row[e] = floor(1e5 * exp(sigma * normal(&random)));
            }
            check(eplb_load_set_row(loads[i], 0, l, row, &error), &error);
        }
    }
    return MOST_LOADS;
}

typedef struct result {
    double microseconds; /* a layer */
    double mean;
    double largest;
    double bound;
    int64_t moves; /* a layer */
    bool valid;
} result;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

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
            double start = seconds();
            check(eplb_plan_create(&plan, NULL, loads[i], cluster, NULL, options, &error), &error);
            double taken = seconds() - start;
            best = taken < best ? taken : best;
            check(eplb_plan_get_info(plan, &info, &error), &error);
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
    eplb_load *loads[MOST_LOADS] = {NULL};
    int32_t count = read_loads(loads);
    bool real = count == MOST_LOADS;
    count = real ? count : draw_loads(loads);
    printf("%d %s loads of %d layers x %d experts, one thread, best of %d runs\n", count,
           real ? "real DeepSeek-V3" : "synthetic", eplb_load_layers(loads[0]),
           eplb_load_experts(loads[0]), RUNS);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        eplb_error error;
        eplb_cluster *cluster;
        check(eplb_cluster_create(&cluster, NULL, shapes[i][1], shapes[i][0] / shapes[i][1], 0,
                                  &error),
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
    for (int32_t i = 0; i < MOST_LOADS; i++) {
        eplb_load_destroy(&loads[i]);
    }
    return EXIT_SUCCESS;
}
