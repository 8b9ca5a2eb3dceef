/* SPDX-License-Identifier: MIT */
/* Planning on one part of a study and scoring on the other. */
#include "generalise.h"

#include <math.h>

#include <eplb/plan.h>

#include "bench.h"

/* Mean over layers and scenarios; `worst` is lifted to the scenario that fares worst, and `layers`
 * get `part` of each layer's mean. Both may be NULL. */
static double score(const eplb_placement *placement, const eplb_load *load, double part,
                    double *worst, double *layers)
{
    int32_t count = eplb_load_layers(load);
    int32_t scenarios = eplb_load_scenarios(load);
    double mean = 0.0;
    for (int32_t k = 0; k < scenarios; k++) {
        double scenario = 0.0;
        for (int32_t l = 0; l < count; l++) {
            eplb_error error;
            double imbalance;
            bench_check(eplb_placement_imbalance(placement, l, eplb_load_row(load, k, l),
                                                 &imbalance, &error),
                        &error);
            scenario += imbalance / count;
            if (layers != NULL) {
                layers[l] += part * imbalance / scenarios;
            }
        }
        if (worst != NULL) {
            *worst = fmax(*worst, scenario);
        }
        mean += scenario / scenarios;
    }
    return mean;
}

static eplb_plan *plan_of(const eplb_load *load, const eplb_cluster *cluster,
                          const generalise_variant *v, double *cpu_seconds)
{
    eplb_error error;
    eplb_plan *plan;
    eplb_plan_options options;
    eplb_plan_options_init(&options);
    options.objective = v->objective;
    options.effort = v->effort > 0 ? v->effort : options.effort;
    double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    bench_check(eplb_plan_create(&plan, NULL, load, cluster, NULL, &options, &error), &error);
    *cpu_seconds += bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    return plan;
}

/* A column's scenarios count alike, however the folds share them out. */
static double part_of_column(const generalise_study *study, const generalise_fold *fold)
{
    int32_t all = 0;
    for (int32_t i = 0; i < study->fold_count; i++) {
        if (study->folds[i].column == fold->column) {
            all += eplb_load_scenarios(study->folds[i].test);
        }
    }
    return (double)eplb_load_scenarios(fold->test) / all;
}

generalise_outcome generalise_measure(const generalise_study *study, const generalise_shape *shape,
                                      const generalise_variant *v)
{
    eplb_error error;
    eplb_cluster *cluster;
    bench_check(eplb_cluster_create(&cluster, NULL, shape->gpus, shape->slots_per_gpu, 0, &error),
                &error);
    int32_t layers = eplb_load_layers(study->folds[0].train);
    generalise_outcome o = {.layers = bench_alloc((size_t)layers, sizeof(*o.layers)),
                            .layer_count = layers};
    for (int32_t i = 0; i < study->fold_count; i++) {
        const generalise_fold *fold = &study->folds[i];
        double part = part_of_column(study, fold);
        eplb_load *load = v->change(fold->train, v->amount);
        eplb_plan *plan = plan_of(load, cluster, v, &o.cpu_seconds);
        const eplb_placement *placement = eplb_plan_placement(plan);
        if (fold->column == 0) {
            o.fit += part * score(placement, fold->train, 0.0, NULL, NULL);
            o.mean[0] += part * score(placement, fold->test, part, &o.worst, o.layers);
        } else {
            o.mean[fold->column] += part * score(placement, fold->test, 0.0, NULL, NULL);
        }
        eplb_plan_destroy(&plan);
        eplb_load_destroy(&load);
    }
    eplb_cluster_destroy(&cluster);
    return o;
}

double generalise_difference(const generalise_outcome *a, const generalise_outcome *b,
                             double *standard_error)
{
    double sum = 0.0;
    double squares = 0.0;
    for (int32_t l = 0; l < a->layer_count; l++) {
        double d = a->layers[l] - b->layers[l];
        sum += d;
        squares += d * d;
    }
    double mean = sum / a->layer_count;
    double variance = fmax(0.0, squares / a->layer_count - mean * mean);
    *standard_error = sqrt(variance / fmax(1.0, a->layer_count - 1.0));
    return mean;
}
