/* SPDX-License-Identifier: MIT */
/* Folds of a study: what is planned on, and what is scored. */
#include "generalise.h"

#include "bench.h"

static eplb_load *pick(const eplb_load *load, const generalise_role *roles, generalise_role wanted)
{
    int32_t count = 0;
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        count += roles[k] == wanted;
    }
    eplb_load *picked = generalise_like(load, count);
    for (int32_t k = 0, next = 0; k < eplb_load_scenarios(load); k++) {
        for (int32_t l = 0; l < eplb_load_layers(load) && roles[k] == wanted; l++) {
            eplb_error error;
            bench_check(eplb_load_set_row(picked, next, l, eplb_load_row(load, k, l), &error),
                        &error);
        }
        next += roles[k] == wanted;
    }
    return picked;
}

void generalise_add_fold(generalise_study *study, int32_t column, const eplb_load *load,
                         const generalise_role *roles)
{
    size_t count = (size_t)study->fold_count;
    generalise_fold *folds = realloc(study->folds, (count + 1) * sizeof(*folds));
    bench_require(folds != NULL, "out of memory");
    folds[count] = (generalise_fold){.column = column,
                                     .train = pick(load, roles, GENERALISE_PLAN),
                                     .test = pick(load, roles, GENERALISE_SCORE)};
    study->folds = folds;
    study->fold_count++;
}

void generalise_free(generalise_study *study)
{
    for (int32_t i = 0; i < study->fold_count; i++) {
        eplb_load_destroy(&study->folds[i].train);
        eplb_load_destroy(&study->folds[i].test);
    }
    free(study->folds);
}
