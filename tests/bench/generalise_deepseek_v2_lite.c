/* SPDX-License-Identifier: MIT */
/*
 * Experts of DeepSeek-V2-Lite that the tokens of three domains went to, in order: short windows,
 * whose counts are noisy.
 */
#include "generalise.h"

#include <eplb/format.h>

#include "bench.h"

#define LITE_LAYERS 26
#define LITE_EXPERTS 64
#define LITE_DOMAINS 3
#define LITE_STEP 256 /* tokens */
#define LITE_MOST_TOKENS 16384
#define LITE_MOST_SLICES 64
/* Slices, steps and the second half as one, of all domains. */
#define LITE_MOST_PARTS (LITE_DOMAINS * (LITE_MOST_SLICES + LITE_MOST_TOKENS / LITE_STEP + 1))

/* A part of a domain's tokens, one scenario. */
typedef struct lite_part {
    int32_t domain;
    int32_t first;
    int32_t end;
    int32_t column; /* -1: a slice to plan on, 0: a step, 2: a second half */
} lite_part;

static int32_t cut_domain(int32_t domain, int32_t tokens, int32_t slices, lite_part *parts)
{
    int32_t half = tokens / 2;
    int32_t count = 0;
    for (int32_t i = 0; i < slices; i++) {
        parts[count++] = (lite_part){domain, half * i / slices, half * (i + 1) / slices, -1};
    }
    for (int32_t first = half; first + LITE_STEP <= tokens; first += LITE_STEP) {
        parts[count++] = (lite_part){domain, first, first + LITE_STEP, 0};
    }
    parts[count++] = (lite_part){domain, half, tokens, 2};
    return count;
}

/* The experts that a domain's tokens went to: an array [layers][tokens][6] of expert ids, which the
 * reader of counts takes for [steps][layers][experts]. */
static void read_ids(const bench_path *path,
                     void (*visit)(void *context, const eplb_counts_row *ids), void *context)
{
    eplb_error error;
    eplb_read_options options;
    eplb_read_options_init(&options);
    options.max_layers = EPLB_MAX_LAYERS;
    eplb_counts_reader *reader;
    bench_check(eplb_counts_open(&reader, NULL, path->text, &options, &error), &error);
    eplb_counts_row row;
    eplb_status status;
    while ((status = eplb_counts_next(reader, &row, &error)) == EPLB_OK) {
        visit(context, &row);
    }
    bench_check(status == EPLB_END ? EPLB_OK : status, &error);
    eplb_counts_close(&reader);
}

static void count_tokens(void *tokens, const eplb_counts_row *ids)
{
    bench_require(ids->step < LITE_LAYERS && ids->layer < LITE_MOST_TOKENS,
                  "too many layers or tokens");
    for (int32_t i = 0; i < ids->length; i++) {
        bench_require(ids->counts[i] < LITE_EXPERTS, "an id is no expert's");
    }
    *(int32_t *)tokens = ids->layer + 1;
}

typedef struct lite_counts {
    const lite_part *parts;
    int32_t count;
    int32_t domain;
    double *rows; /* [count][layers][experts] */
} lite_counts;

static double *lite_row(const lite_counts *counts, int32_t part, int64_t layer)
{
    return counts->rows + ((size_t)part * LITE_LAYERS + (size_t)layer) * LITE_EXPERTS;
}

static void count_ids(void *context, const eplb_counts_row *ids)
{
    lite_counts *counts = context;
    for (int32_t p = 0; p < counts->count; p++) {
        const lite_part *part = &counts->parts[p];
        if (part->domain != counts->domain || ids->layer < part->first || ids->layer >= part->end) {
            continue;
        }
        for (int32_t i = 0; i < ids->length; i++) {
            lite_row(counts, p, ids->step)[(int32_t)ids->counts[i]] += 1.0;
        }
    }
}

static void add_lite_folds(generalise_study *study, const eplb_load *load, const lite_part *parts)
{
    generalise_role roles[LITE_MOST_PARTS];
    for (int32_t column = 0; column < GENERALISE_COLUMNS; column += 2) {
        for (int32_t p = 0; p < eplb_load_scenarios(load); p++) {
            roles[p] = parts[p].column < 0         ? GENERALISE_PLAN
                       : parts[p].column == column ? GENERALISE_SCORE
                                                   : GENERALISE_UNUSED;
        }
        generalise_add_fold(study, column, load, roles);
    }
    for (int32_t out = 0; out < LITE_DOMAINS; out++) {
        for (int32_t p = 0; p < eplb_load_scenarios(load); p++) {
            roles[p] = parts[p].column < 0 && parts[p].domain != out    ? GENERALISE_PLAN
                       : parts[p].column == 0 && parts[p].domain == out ? GENERALISE_SCORE
                                                                        : GENERALISE_UNUSED;
        }
        generalise_add_fold(study, 1, load, roles);
    }
}

/* Each domain's first half in so many slices. */
static bool read_lite(generalise_study *study, int32_t slices)
{
    static const char *const names[LITE_DOMAINS] = {"deepseek_v2_lite/law_topk.npy",
                                                    "deepseek_v2_lite/summary_topk.npy",
                                                    "deepseek_v2_lite/translation_topk.npy"};
    lite_part parts[LITE_MOST_PARTS];
    lite_counts counts = {.parts = parts};
    bench_path paths[LITE_DOMAINS];
    for (int32_t d = 0; d < LITE_DOMAINS; d++) {
        paths[d] = bench_shared(names[d]);
        if (!bench_is_there(&paths[d])) {
            return false;
        }
        int32_t tokens = 0;
        read_ids(&paths[d], count_tokens, &tokens);
        counts.count += cut_domain(d, tokens, slices, parts + counts.count);
    }
    counts.rows = bench_alloc((size_t)counts.count * LITE_LAYERS * LITE_EXPERTS, sizeof(double));
    for (int32_t d = 0; d < LITE_DOMAINS; d++) {
        counts.domain = d;
        read_ids(&paths[d], count_ids, &counts);
    }
    eplb_error error;
    eplb_load *load;
    bench_check(eplb_load_create(&load, NULL, counts.count, LITE_LAYERS, LITE_EXPERTS, &error),
                &error);
    for (int32_t p = 0; p < counts.count; p++) {
        for (int32_t l = 0; l < LITE_LAYERS; l++) {
            bench_check(eplb_load_set_row(load, p, l, lite_row(&counts, p, l), &error), &error);
        }
    }
    add_lite_folds(study, load, parts);
    eplb_load_destroy(&load);
    free(counts.rows);
    return true;
}

bool generalise_deepseek_v2_lite(generalise_study *study)
{
    *study = (generalise_study){
        .bit = GENERALISE_DEEPSEEK_V2_LITE,
        .name = "deepseek_v2_lite",
        .about = "plans on the first half of three domains' tokens, 16 slices of 260 tokens each, "
                 "scored on steps of 256 tokens of the second half",
        .columns = {"second half", "domain left out", "as one step"},
        .shapes = {{.gpus = 8, .slots_per_gpu = 10}},
    };
    return read_lite(study, 16);
}

bool generalise_deepseek_v2_lite_fine(generalise_study *study)
{
    *study = (generalise_study){
        .bit = GENERALISE_DEEPSEEK_V2_LITE,
        .name = "deepseek_v2_lite_fine",
        .about = "the same in 64 slices of 65 tokens",
        .slow = true,
        .columns = {"second half", "domain left out", "as one step"},
        .shapes = {{.gpus = 8, .slots_per_gpu = 10}},
    };
    return read_lite(study, LITE_MOST_SLICES);
}
