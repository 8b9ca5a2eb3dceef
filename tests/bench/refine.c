/* SPDX-License-Identifier: MIT */
/*
 * What exact optimisation gains over the planner's search, shape by shape, and what it costs: each
 * layer is planned without a refiner and with eplb_ilp_refiner in EPLB_ILP_ON, one thread. Fails
 * where a layer gets worse or a bound is above a placement. Real loads are left out where they do
 * not lie beside the checkout. Usage: bench-refine [n [SLOTS/GPUS]]: every n-th layer of the
 * recordings, of one shape.
 */
#include <math.h>
#include <string.h>

#include <eplb/eplb.h>
#include <eplb/ilp.h>

#include "generalise.h"
#include "workloads.h"

#define EVERY 7
#define SEEN 0.00005 /* by four decimals */
#define ROUNDING 1e-9

typedef struct tally {
    int32_t layers;
    int32_t optimal;
    int32_t better;
    int32_t wrong;
    double without; /* sums over the layers */
    double with;
    double bound_without;
    double bound_with;
    double seconds_without;
    double seconds;
    double most_seconds; /* of a layer */
} tally;

static eplb_load *one_layer(const eplb_load *load, int32_t first, int32_t count, int32_t layer)
{
    eplb_error error;
    eplb_load *one;
    bench_check(eplb_load_create(&one, NULL, count, 1, eplb_load_experts(load), &error), &error);
    for (int32_t k = 0; k < count; k++) {
        bench_check(eplb_load_set_row(one, k, 0, eplb_load_row(load, first + k, layer), &error),
                    &error);
    }
    return one;
}

/* Plans the one layer; returns the processor's seconds. */
static double plan(eplb_plan_layer *layer, const eplb_load *load, const eplb_cluster *cluster,
                   int32_t objective, const eplb_refiner *refiner)
{
    eplb_error error;
    eplb_plan *made;
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.objective = objective;
    options.refiner = refiner;
    double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    bench_check(eplb_plan_create(&made, NULL, load, cluster, NULL, &options, &error), &error);
    double seconds = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    *layer = (eplb_plan_layer){.struct_size = sizeof(*layer)};
    bench_check(eplb_plan_get_layer(made, 0, layer, &error), &error);
    bench_check(eplb_placement_validate(eplb_plan_placement(made), 0, &error), &error);
    eplb_plan_destroy(&made);
    return seconds;
}

static void add(tally *sum, const eplb_load *load, const eplb_cluster *cluster, int32_t objective,
                const eplb_refiner *refiner)
{
    eplb_plan_layer without;
    eplb_plan_layer with;
    sum->seconds_without += plan(&without, load, cluster, objective, NULL);
    double seconds = plan(&with, load, cluster, objective, refiner);
    if (!with.scored) {
        return;
    }
    sum->layers++;
    sum->optimal += with.stop == EPLB_STOP_OPTIMAL;
    sum->better += with.imbalance_after < without.imbalance_after;
    sum->wrong += with.imbalance_after > without.imbalance_after ||
                  with.lower_bound < without.lower_bound ||
                  with.lower_bound > with.imbalance_after * (1.0 + ROUNDING);
    sum->without += without.imbalance_after;
    sum->with += with.imbalance_after;
    sum->bound_without += without.lower_bound;
    sum->bound_with += with.lower_bound;
    sum->seconds += seconds;
    sum->most_seconds = fmax(sum->most_seconds, seconds);
}

static const char *verdict(const tally *t)
{
    bool better = t->without - t->with > SEEN * t->layers;
    bool proven = t->bound_with - t->bound_without > SEEN * t->layers;
    return t->wrong > 0    ? "WORSE, or a wrong bound"
           : better        ? ""
           : proven        ? "only the bound gains"
           : t->better > 0 ? "less than 0.00005 is gained"
                           : "nothing is gained";
}

static void print(const tally *t, const char *name, int32_t slots, int32_t gpus)
{
    double n = t->layers;
    printf("%-26s %4d/%-4d %6d %8.4f %8.4f %8.4f %8.4f %7d %7d %8.3f %7.2f %7.2f  %s\n", name,
           slots, gpus, t->layers, t->without / n, t->with / n, t->bound_without / n,
           t->bound_with / n, t->better, t->optimal, t->seconds_without / n, t->seconds / n,
           t->most_seconds, verdict(t));
    fflush(stdout);
}

static void print_head(int32_t every)
{
    printf("mean imbalance and bound without and with exact optimisation, layers made better and\n"
           "proven optimal, processor seconds a layer without, with, and the most with; one layer\n"
           "in %d of the recordings\n\n%-26s %9s %6s %8s %8s %8s %8s %7s %7s %8s %7s %7s\n",
           every, "", "slots/GPUs", "layers", "without", "with", "bound", "with", "better",
           "optimal", "CPU s", "with", "most");
}

/* What is planned for, and how. */
typedef struct subject {
    const char *name;
    const eplb_load *load;
    bool is_apart; /* each scenario by itself */
    int32_t objective;
} subject;

typedef struct choice {
    const eplb_refiner *refiner;
    int32_t every;
    const char *shape; /* NULL: all */
} choice;

static bool is_chosen(const choice *c, int32_t slots, int32_t gpus)
{
    char shape[32];
    snprintf(shape, sizeof(shape), "%d/%d", slots, gpus);
    return c->shape == NULL || strcmp(c->shape, shape) == 0;
}

/* Returns the number of layers that went wrong. */
static int32_t run(const subject *s, const choice *c, int32_t slots, int32_t gpus)
{
    if (!is_chosen(c, slots, gpus)) {
        return 0;
    }
    eplb_error error;
    eplb_cluster *cluster;
    tally sum = {0};
    int32_t scenarios = eplb_load_scenarios(s->load);
    int32_t count = s->is_apart ? 1 : scenarios;
    bench_check(eplb_cluster_create(&cluster, NULL, gpus, slots / gpus, 0, &error), &error);
    for (int32_t k = 0; k < scenarios; k += count) {
        /* other layers of other workloads */
        for (int32_t l = k % c->every; l < eplb_load_layers(s->load); l += c->every) {
            eplb_load *one = one_layer(s->load, k, count, l);
            add(&sum, one, cluster, s->objective, c->refiner);
            eplb_load_destroy(&one);
        }
    }
    print(&sum, s->name, slots, gpus);
    eplb_cluster_destroy(&cluster);
    return sum.wrong;
}

static int32_t run_deepseek_v3(const choice *c)
{
    static const int32_t shapes[][2] = {{288, 32}, {320, 64}, {288, 72}, {288, 96}, {288, 144}};
    eplb_load *load = bench_read_workloads();
    int32_t wrong = 0;
    for (size_t i = 0; load != NULL && i < 2 * sizeof(shapes) / sizeof(shapes[0]); i++) {
        bool is_apart = i % 2 == 0;
        const subject s = {.name = is_apart ? "DeepSeek-V3, each of 9" : "DeepSeek-V3, for all 9",
                           .load = load,
                           .is_apart = is_apart};
        wrong += run(&s, c, shapes[i / 2][0], shapes[i / 2][1]);
    }
    eplb_load_destroy(&load);
    return wrong;
}

/* The scenarios that the first fold of a study is planned on, and their sum. */
static int32_t run_study(generalise_reader *read, const char *const names[2], const choice *c)
{
    generalise_study study;
    int32_t wrong = 0;
    bool is_there = read(&study);
    for (int sums = 0; is_there && sums < 2; sums++) {
        const subject s = {.name = names[sums],
                           .load = study.folds[0].train,
                           .objective = sums ? EPLB_OBJECTIVE_SUM : EPLB_OBJECTIVE_MEAN_OF_MAX};
        int32_t gpus = study.shapes[0].gpus;
        wrong += run(&s, c, gpus * study.shapes[0].slots_per_gpu, gpus);
    }
    generalise_free(&study);
    return wrong;
}

/* As of models with few experts: 32 layers, the hottest expert with less than twice the mean load.
 */
static eplb_load *draw_few(int32_t experts)
{
    eplb_error error;
    eplb_load *load;
    eplb_random random;
    eplb_random_seed(&random, 1);
    bench_check(eplb_load_create(&load, NULL, 1, 32, experts, &error), &error);
    for (int32_t l = 0; l < 32; l++) {
        double row[16];
        for (int32_t e = 0; e < experts; e++) {
            row[e] = floor(1e5 * exp(0.4 * bench_normal(&random)));
        }
        bench_check(eplb_load_set_row(load, 0, l, row, &error), &error);
    }
    return load;
}

static int32_t run_few(const choice *c)
{
    static const int32_t shapes[][3] = {{8, 12, 4}, {8, 16, 8}, {16, 24, 8}};
    const choice all = {.refiner = c->refiner, .every = 1, .shape = c->shape};
    int32_t wrong = 0;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        eplb_load *load = draw_few(shapes[i][0]);
        const subject s = {.name =
                               shapes[i][0] == 8 ? "8 experts, synthetic" : "16 experts, synthetic",
                           .load = load};
        wrong += run(&s, &all, shapes[i][1], shapes[i][2]);
        eplb_load_destroy(&load);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    static const char *const lite[] = {"DeepSeek-V2-Lite, 48 parts", "DeepSeek-V2-Lite, sum"};
    static const char *const gpt[] = {"gpt-oss-20b, 100 topics", "gpt-oss-20b, sum"};
    int32_t every = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : EVERY;
    bench_require(every > 0, "usage: bench-refine [n [SLOTS/GPUS]], n > 0");
    eplb_error error;
    eplb_ilp *ilp;
    eplb_ilp_options options;
    eplb_ilp_options_init(&options);
    options.mode = EPLB_ILP_ON;
    bench_check(eplb_ilp_create(&ilp, NULL, &options, &error), &error);
    const choice c = {
        .refiner = eplb_ilp_refiner(ilp), .every = every, .shape = argc > 2 ? argv[2] : NULL};
    print_head(every);
    int32_t wrong = run_few(&c);
    wrong += run_study(generalise_gpt_oss, gpt, &c);
    wrong += run_study(generalise_deepseek_v2_lite, lite, &c);
    wrong += run_deepseek_v3(&c);
    eplb_ilp_destroy(&ilp);
    if (wrong > 0) {
        printf("FAILED: %d layers are worse, or have a wrong bound\n", wrong);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
