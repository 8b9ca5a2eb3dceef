/* SPDX-License-Identifier: MIT */
/*
 * How well plans for several scenarios serve traffic that they have not seen. A study is a set of
 * recorded loads cut into folds: what is planned on, and what the plan is scored on. A variant is a
 * way to plan: what is done with the scenarios before, the objective and the effort.
 */
#ifndef EPLB_TESTS_GENERALISE_H
#define EPLB_TESTS_GENERALISE_H

#include <stdbool.h>
#include <stdint.h>

#include <eplb/load.h>

#define GENERALISE_COLUMNS 3
#define GENERALISE_SHAPES 2

/* A study as a bit: which ones a variant makes sense for. */
#define GENERALISE_DEEPSEEK_V3 1u
#define GENERALISE_DEEPSEEK_V2_LITE 2u
#define GENERALISE_GPT_OSS 4u
#define GENERALISE_ALL 7u

typedef struct generalise_shape {
    int32_t gpus;
    int32_t slots_per_gpu;
    double most; /* of the first column, for plans with the defaults; 0: no bar */
} generalise_shape;

typedef struct generalise_fold {
    int32_t column; /* where its score belongs; the first one is what variants are judged by */
    eplb_load *train;
    eplb_load *test;
} generalise_fold;

typedef struct generalise_study {
    uint32_t bit;
    const char *name;
    const char *about;
    bool slow; /* only when it is named */
    const char *columns[GENERALISE_COLUMNS];
    generalise_shape shapes[GENERALISE_SHAPES]; /* 0 GPUs: none */
    generalise_fold *folds;
    int32_t fold_count;
} generalise_study;

/* What a scenario is used for in a fold. */
typedef enum generalise_role {
    GENERALISE_UNUSED = 0,
    GENERALISE_PLAN = 1,
    GENERALISE_SCORE = 2,
} generalise_role;

/* Adds a fold of some of a load's scenarios: roles [scenarios]. */
void generalise_add_fold(generalise_study *study, int32_t column, const eplb_load *load,
                         const generalise_role *roles);

/* Reads a study; false when its data are not there. */
typedef bool generalise_reader(generalise_study *study);
bool generalise_deepseek_v3(generalise_study *study);
bool generalise_deepseek_v2_lite(generalise_study *study);
bool generalise_deepseek_v2_lite_fine(generalise_study *study);
bool generalise_gpt_oss(generalise_study *study);
void generalise_free(generalise_study *study);

/* Makes the scenarios to plan on from those that were recorded. */
typedef eplb_load *generalise_change(const eplb_load *load, double amount);

generalise_change generalise_as_is, generalise_another_search, generalise_alike,
    generalise_by_tokens, generalise_smooth, generalise_shrink, generalise_add_mean,
    generalise_add_copies, generalise_add_draws, generalise_merge_runs, generalise_cluster;

typedef struct generalise_variant {
    const char *name;
    generalise_change *change;
    double amount;
    int32_t objective; /* an eplb_objective */
    int32_t effort;    /* 0: the default */
    uint32_t studies;
    bool slow; /* only when it is named */
} generalise_variant;

typedef struct generalise_outcome {
    double fit;
    double mean[GENERALISE_COLUMNS];
    double worst;   /* of the first column's scenarios */
    double *layers; /* [layers] means of the first column */
    int32_t layer_count;
    double cpu_seconds; /* of planning, all folds */
} generalise_outcome;

/* Plans each fold as the variant says. The outcome's layers are to be freed. */
generalise_outcome generalise_measure(const generalise_study *study, const generalise_shape *shape,
                                      const generalise_variant *v);

/* The mean difference of the first column over layers, and its standard error. */
double generalise_difference(const generalise_outcome *a, const generalise_outcome *b,
                             double *standard_error);

/* A load of zeros of the same layers and experts. */
eplb_load *generalise_like(const eplb_load *load, int32_t scenarios);

/* Sum of one row. */
double generalise_total(const eplb_load *load, int32_t scenario, int32_t layer);

#endif
