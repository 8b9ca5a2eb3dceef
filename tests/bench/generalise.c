/* SPDX-License-Identifier: MIT */
/*
 * What predicts traffic that was not seen best: the study of eplb/plan.h's objectives, and of what
 * can be done with scenarios before they are planned for, on recorded loads.
 *
 *     bench-generalise [STUDY [VARIANT]]
 *
 * VARIANT is the beginning of a name. Without a study or a variant, all but the slow ones. Prints
 * for each the mean imbalance over layers and scenarios: on what was planned for (fit), on what was
 * left out, and of the scenario left out that fares worst; the difference to the plan with the
 * defaults, with its standard error over the layers; and the processor time of planning. Exit
 * codes: 1 when a plan with the defaults is worse than the study allows or than the plan of the
 * sum, 77 when no recording is there.
 */
#include "generalise.h"

#include <math.h>
#include <string.h>

#include <eplb/plan.h>

#include "bench.h"

#define MEAN EPLB_OBJECTIVE_MEAN_OF_MAX
#define DEEPSEEK (GENERALISE_DEEPSEEK_V3 | GENERALISE_DEEPSEEK_V2_LITE)
#define SLICED (GENERALISE_DEEPSEEK_V2_LITE | GENERALISE_GPT_OSS)

static const generalise_variant variants[] = {
    {"mean-of-max", generalise_as_is, 0.0, MEAN, 0, GENERALISE_ALL, false},
    {"plan of the sum", generalise_as_is, 0.0, EPLB_OBJECTIVE_SUM, 0, GENERALISE_ALL, false},
    {"sum, all alike", generalise_alike, 0.0, EPLB_OBJECTIVE_SUM, 0, GENERALISE_ALL, false},
    {"another search 1", generalise_another_search, 1.0, MEAN, 0, GENERALISE_ALL, false},
    {"another search 2", generalise_another_search, 2.0, MEAN, 0, GENERALISE_ALL, false},
    {"another search 3", generalise_another_search, 3.0, MEAN, 0, GENERALISE_ALL, false},
    {"max-of-max", generalise_as_is, 0.0, EPLB_OBJECTIVE_MAX_OF_MAX, 0, GENERALISE_ALL, false},
    {"smooth 5 %", generalise_smooth, 0.05, MEAN, 0, GENERALISE_ALL, false},
    {"smooth 10 %", generalise_smooth, 0.10, MEAN, 0, GENERALISE_ALL, false},
    {"smooth 20 %", generalise_smooth, 0.20, MEAN, 0, GENERALISE_ALL, false},
    {"smooth 40 %", generalise_smooth, 0.40, MEAN, 0, GENERALISE_ALL, false},
    {"smooth by noise", generalise_shrink, 1.0, MEAN, 0, GENERALISE_ALL, false},
    {"extrapolate 10 %", generalise_smooth, -0.10, MEAN, 0, GENERALISE_ALL, false},
    {"extrapolate 20 %", generalise_smooth, -0.20, MEAN, 0, GENERALISE_ALL, false},
    {"and the mean", generalise_add_mean, 0.0, MEAN, 0, GENERALISE_ALL, false},
    {"and copies, 5 %", generalise_add_copies, 0.05, MEAN, 0, GENERALISE_ALL, false},
    {"and copies, 15 %", generalise_add_copies, 0.15, MEAN, 0, GENERALISE_ALL, false},
    {"and draws", generalise_add_draws, 0.0, MEAN, 0, GENERALISE_ALL, false},
    {"weight tokens", generalise_by_tokens, 1.0, MEAN, 0, GENERALISE_ALL, false},
    {"weight root tokens", generalise_by_tokens, 0.5, MEAN, 0, GENERALISE_ALL, false},
    {"runs of 2", generalise_merge_runs, 2.0, MEAN, 0, SLICED, false},
    {"runs of 4", generalise_merge_runs, 4.0, MEAN, 0, SLICED, false},
    {"runs of 8", generalise_merge_runs, 8.0, MEAN, 0, SLICED, false},
    {"runs of 16", generalise_merge_runs, 16.0, MEAN, 0, SLICED, false},
    {"8 clusters", generalise_cluster, 8.0, MEAN, 0, SLICED, false},
    {"16 clusters", generalise_cluster, 16.0, MEAN, 0, SLICED, false},
    {"32 clusters", generalise_cluster, 32.0, MEAN, 0, SLICED, false},
    {"effort 3", generalise_as_is, 0.0, MEAN, 3, GENERALISE_ALL, false},
    {"effort 6", generalise_as_is, 0.0, MEAN, 6, DEEPSEEK, false},
    {"effort 7", generalise_as_is, 0.0, MEAN, 7, DEEPSEEK, false},
    {"effort 7", generalise_as_is, 0.0, MEAN, 7, GENERALISE_GPT_OSS, true},
    {"effort 9", generalise_as_is, 0.0, MEAN, 9, GENERALISE_ALL, true},
};

enum { VARIANTS = sizeof(variants) / sizeof(variants[0]), DEFAULT = 0, SUM = 1, SUM_ALIKE = 2 };

static void print_head(const generalise_study *study, const generalise_shape *shape)
{
    printf("\n%s, %d slots on %d GPUs: %s\n", study->name, shape->gpus * shape->slots_per_gpu,
           shape->gpus, study->about);
    printf("%-19s %8s %17s %8s %17s %17s %18s %8s\n", "", "fit", study->columns[0], "worst",
           study->columns[1], study->columns[2], "to mean-of-max", "CPU s");
}

static void print_row(const char *name, const generalise_outcome *o,
                      const generalise_outcome *reference)
{
    double standard_error;
    double change = generalise_difference(o, reference, &standard_error);
    printf("%-19s %8.4f %17.4f %8.4f %17.4f %17.4f %+9.4f +-%6.4f %8.2f\n", name, o->fit,
           o->mean[0], o->worst, o->mean[1], o->mean[2], change, standard_error, o->cpu_seconds);
    fflush(stdout);
}

/* Whether plans with the defaults are as good as the study demands. */
static bool is_good_enough(const generalise_shape *shape, const generalise_outcome *plan)
{
    if (shape->most > 0.0 && plan->mean[0] > shape->most) {
        printf("FAILED: %.4f left out, at most %.4f allowed\n", plan->mean[0], shape->most);
        return false;
    }
    return true;
}

/* Whether plans with the defaults beat the plan of a sum in every column. */
static bool is_better(const generalise_outcome *plan, const generalise_outcome *sum,
                      const char *sum_name)
{
    bool better = true;
    for (int32_t c = 0; c < GENERALISE_COLUMNS; c++) {
        if (plan->mean[c] >= sum->mean[c]) {
            printf("FAILED: %.4f in column %d, no better than %.4f of \"%s\"\n", plan->mean[c],
                   c + 1, sum->mean[c], sum_name);
            better = false;
        }
    }
    return better;
}

static bool begins(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool is_wanted(const generalise_variant *v, const generalise_study *study, const char *name)
{
    bool always = v == &variants[DEFAULT] || v == &variants[SUM] || v == &variants[SUM_ALIKE];
    bool is_named = name != NULL && begins(v->name, name);
    return (v->studies & study->bit) != 0 && (always || is_named || (name == NULL && !v->slow));
}

static bool run_shape(const generalise_study *study, const generalise_shape *shape,
                      const char *name)
{
    print_head(study, shape);
    generalise_outcome outcomes[VARIANTS] = {{0}};
    for (int32_t i = 0; i < VARIANTS; i++) {
        if (is_wanted(&variants[i], study, name)) {
            outcomes[i] = generalise_measure(study, shape, &variants[i]);
            print_row(variants[i].name, &outcomes[i], &outcomes[DEFAULT]);
        }
    }
    bool good = is_good_enough(shape, &outcomes[DEFAULT]);
    for (int32_t sum = SUM; sum <= SUM_ALIKE; sum++) {
        good = is_better(&outcomes[DEFAULT], &outcomes[sum], variants[sum].name) && good;
    }
    for (int32_t i = 0; i < VARIANTS; i++) {
        free(outcomes[i].layers);
    }
    return good;
}

static bool is_variant(const char *name)
{
    for (int32_t i = 0; i < VARIANTS; i++) {
        if (begins(variants[i].name, name)) {
            return true;
        }
    }
    return false;
}

static void print_usage(void)
{
    fprintf(stderr, "usage: bench-generalise [STUDY [VARIANT]]\n"
                    "studies: deepseek_v3, deepseek_v2_lite, deepseek_v2_lite_fine, "
                    "gpt_oss_20b\nvariants:\n");
    for (int32_t i = 0; i < VARIANTS; i++) {
        fprintf(stderr, "    \"%s\"%s\n", variants[i].name,
                variants[i].slow ? " (slow: only when named)" : "");
    }
}

int main(int argc, char **argv)
{
    static generalise_reader *const readers[] = {
        generalise_deepseek_v3, generalise_deepseek_v2_lite, generalise_deepseek_v2_lite_fine,
        generalise_gpt_oss};
    const char *study_name = argc > 1 ? argv[1] : NULL;
    const char *variant_name = argc > 2 ? argv[2] : NULL;
    if (argc > 3 || (variant_name != NULL && !is_variant(variant_name))) {
        print_usage();
        return 2;
    }
    bool known = study_name == NULL;
    bool found = false;
    bool good = true;
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
        generalise_study study;
        bool is_there = readers[i](&study);
        bool is_named = study_name != NULL && strcmp(study_name, study.name) == 0;
        bool is_asked = is_named || (study_name == NULL && !study.slow);
        known = known || is_asked;
        found = found || (is_asked && is_there);
        for (int32_t s = 0; s < GENERALISE_SHAPES && is_asked && is_there; s++) {
            if (study.shapes[s].gpus > 0) {
                good = run_shape(&study, &study.shapes[s], variant_name) && good;
            }
        }
        generalise_free(&study);
    }
    if (!known) {
        print_usage();
        return 2;
    }
    if (!found) {
        printf("no recordings in %s/data\n", test_shared_directory());
        return BENCH_SKIPPED;
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
