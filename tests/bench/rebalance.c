/* SPDX-License-Identifier: MIT */
/*
 * Rebalances between real workloads: the placement in force is a plan for one of nine, the load
 * that of another, 288 slots on 32 GPUs. Copies are a layer's, the mean over layers and pairs;
 * times are the processor's for all layers, one thread. An argument takes so many of the 72 ordered
 * pairs, evenly spread.
 */
#include <stdio.h>
#include <stdlib.h>

#include <eplb/eplb.h>
#include <eplb/rebalance.h>

#include "workloads.h"

#define SLOTS 288
#define GPUS 32
#define PAIRS (BENCH_WORKLOADS * (BENCH_WORKLOADS - 1))

typedef struct setting {
    eplb_load *load[BENCH_WORKLOADS];
    eplb_load *all; /* one scenario each */
    eplb_cluster *cluster;
    eplb_plan *plan[BENCH_WORKLOADS];
    int32_t layers;
    int32_t pairs; /* of PAIRS */
} setting;

/* Sums over rebalances of one kind. */
typedef struct tally {
    int32_t count;
    double copies; /* of a layer */
    double before;
    double after;
    double fresh;
    double fresh_copies;
    int32_t layers_missed;
    int32_t layers_changed;
    double cpu_seconds;
    double slowest;
} tally;

/* Copies a layer at which curves are read. */
static const int32_t marks[] = {0, 1, 2, 4, 8, 16, 32};

enum { MARKS = sizeof(marks) / sizeof(marks[0]) };

static void set_up(setting *s, eplb_load *all)
{
    eplb_error error;
    s->all = all;
    s->layers = eplb_load_layers(all);
    bench_check(eplb_cluster_create(&s->cluster, NULL, GPUS, SLOTS / GPUS, 0, &error), &error);
    for (int32_t k = 0; k < BENCH_WORKLOADS; k++) {
        bench_check(
            eplb_load_create(&s->load[k], NULL, 1, s->layers, eplb_load_experts(all), &error),
            &error);
        for (int32_t l = 0; l < s->layers; l++) {
            bench_check(eplb_load_set_row(s->load[k], 0, l, eplb_load_row(all, k, l), &error),
                        &error);
        }
        bench_check(eplb_plan_create(&s->plan[k], NULL, s->load[k], s->cluster, NULL, NULL, &error),
                    &error);
    }
}

static void tear_down(setting *s)
{
    for (int32_t k = 0; k < BENCH_WORKLOADS; k++) {
        eplb_plan_destroy(&s->plan[k]);
        eplb_load_destroy(&s->load[k]);
    }
    eplb_cluster_destroy(&s->cluster);
    eplb_load_destroy(&s->all);
}

static void add(tally *t, const eplb_plan *plan, double seconds)
{
    eplb_error error;
    eplb_plan_info info = {.struct_size = sizeof(info)};
    eplb_rebalance_info more = {.struct_size = sizeof(more)};
    bench_check(eplb_plan_get_info(plan, &info, &error), &error);
    bench_check(eplb_plan_get_rebalance(plan, &more, &error), &error);
    bench_require(info.valid == 1, "a plan is not valid");
    t->count++;
    t->copies += (double)info.copies / info.layers;
    t->before += info.imbalance_before_mean;
    t->after += info.imbalance_after_mean;
    t->fresh += more.fresh_mean;
    t->fresh_copies += (double)more.fresh_copies / info.layers;
    t->layers_missed += more.layers_missed;
    t->layers_changed += more.layers_changed;
    t->cpu_seconds += seconds;
    t->slowest = seconds > t->slowest ? seconds : t->slowest;
}

static eplb_plan *rebalance(tally *t, const setting *s, const eplb_load *load, int32_t from,
                            int32_t effort, const eplb_rebalance_options *options)
{
    eplb_error error;
    eplb_plan *plan;
    eplb_plan_options planning;
    eplb_plan_options_init(&planning);
    planning.effort = effort;
    double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    bench_check(eplb_rebalance_create(&plan, NULL, load, s->cluster,
                                      eplb_plan_placement(s->plan[from]), &planning, options,
                                      &error),
                &error);
    add(t, plan, bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start);
    return plan;
}

/* The whole curve at the marks; it stays at its last point. */
static void read_curve(const eplb_plan *plan, int32_t layers, double *at)
{
    eplb_error error;
    int32_t count;
    bench_check(eplb_plan_get_curve(plan, -1, NULL, 0, &count, &error), &error);
    bench_require(count > 0, "a curve is empty");
    eplb_curve_point *points = bench_alloc((size_t)count, sizeof(*points));
    bench_check(eplb_plan_get_curve(plan, -1, points, count, &count, &error), &error);
    for (int32_t m = 0; m < MARKS; m++) {
        int32_t i = 0;
        while (i + 1 < count && points[i + 1].copies <= (int64_t)marks[m] * layers) {
            i++;
        }
        at[m] += points[i].imbalance;
    }
    free(points);
}

/* All pairs with the same options; `curve` [MARKS], may be NULL, gets the mean curve. */
static tally run_pairs(const setting *s, int32_t effort, const eplb_rebalance_options *options,
                       double *curve)
{
    tally t = {0};
    for (int32_t i = 0; i < s->pairs; i++) {
        int32_t pair = i * PAIRS / s->pairs;
        int32_t from = pair / (BENCH_WORKLOADS - 1);
        int32_t to = pair % (BENCH_WORKLOADS - 1);
        to += to >= from;
        eplb_plan *plan = rebalance(&t, s, s->load[to], from, effort, options);
        if (curve != NULL) {
            read_curve(plan, s->layers, curve);
        }
        eplb_plan_destroy(&plan);
    }
    for (int32_t m = 0; curve != NULL && m < MARKS; m++) {
        curve[m] /= s->pairs;
    }
    return t;
}

static tally run_scenarios(const setting *s, int32_t effort, const eplb_rebalance_options *options)
{
    tally t = {0};
    for (int32_t from = 0; from < BENCH_WORKLOADS; from++) {
        eplb_plan *plan = rebalance(&t, s, s->all, from, effort, options);
        eplb_plan_destroy(&plan);
    }
    return t;
}

static void print_head(const char *title)
{
    printf("\n%s\n  %-28s %8s %8s %8s %8s %8s %8s %8s\n", title, "", "copies", "before", "after",
           "missed", "changed", "CPU ms", "slowest");
}

static void print_row(const char *name, const tally *t)
{
    printf("  %-28s %8.2f %8.4f %8.4f %8d %8d %8.0f %8.0f\n", name, t->copies / t->count,
           t->before / t->count, t->after / t->count, t->layers_missed, t->layers_changed,
           1e3 * t->cpu_seconds / t->count, 1e3 * t->slowest);
    fflush(stdout);
}

static void measure_targets(const setting *s, int32_t effort)
{
    static const double targets[] = {1.10, 1.05, 1.02, 1.01};
    print_head("One workload to another");
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        eplb_rebalance_options options;
        eplb_rebalance_options_init(&options);
        options.target_imbalance = targets[i];
        tally t = run_pairs(s, effort, &options, NULL);
        char name[64];
        snprintf(name, sizeof(name), "target %.2f, effort %d", targets[i], effort);
        print_row(name, &t);
    }
}

static void measure_curve(const setting *s)
{
    eplb_rebalance_options options;
    eplb_rebalance_options_init(&options);
    tally t = run_pairs(s, 5, &options, NULL);
    print_row("default price", &t);
    printf("  a plan from nothing, renamed: %.1f of %d slots copied, imbalance %.4f\n",
           t.fresh_copies / t.count, SLOTS, t.fresh / t.count);

    double curve[MARKS] = {0};
    options.copy_price = 0.0;
    options.tolerance = 0.0;
    t = run_pairs(s, 5, &options, curve);
    print_row("copies free, no tolerance", &t);
    printf("\nThe whole curve: copies a layer and imbalance\n ");
    for (int32_t m = 0; m < MARKS; m++) {
        printf(" %d: %.4f%s", marks[m], curve[m], m + 1 < MARKS ? "," : "\n");
    }
}

static void measure_scenarios(const setting *s)
{
    static const double targets[] = {1.10, 1.05, 1.02};
    print_head("One workload to all nine, as scenarios");
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        eplb_rebalance_options options;
        eplb_rebalance_options_init(&options);
        options.target_imbalance = targets[i];
        tally t = run_scenarios(s, 5, &options);
        char name[64];
        snprintf(name, sizeof(name), "target %.2f", targets[i]);
        print_row(name, &t);
    }
}

int main(int argc, char **argv)
{
    setting s = {.pairs = argc > 1 ? atoi(argv[1]) : PAIRS};
    bench_require(s.pairs >= 1 && s.pairs <= PAIRS, "the argument is a number of pairs, 1 to 72");
    eplb_load *all = bench_read_workloads();
    if (all == NULL) {
        printf("the workloads are not there\n");
        return BENCH_SKIPPED;
    }
    set_up(&s, all);
    printf("DeepSeek-V3, %d slots on %d GPUs, %d layers, %d pairs of workloads\n", SLOTS, GPUS,
           s.layers, s.pairs);
    measure_targets(&s, 5);
    measure_curve(&s);
    measure_scenarios(&s);
    measure_targets(&s, 7);
    measure_targets(&s, 8);
    tear_down(&s);
    return EXIT_SUCCESS;
}
