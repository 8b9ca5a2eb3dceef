/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "commands.h"
#include "message.h"
#include "options.h"
#include "output.h"
#include "sink.h"
#include "synth_model.h"

typedef enum log_format {
    LOG_JSONL,
    LOG_CSV,
    LOG_SGLANG,
} log_format;

static const char *const log_formats[] = {"jsonl", "csv", "sglang", NULL};

typedef struct synth_values {
    synth_shape shape;
    int32_t steps;
    int32_t first_layer;
    int32_t format; /* a log_format */
    const char *out;
} synth_values;

/* What readers accept by default, see eplb_read_options. */
#define MOST_LAYERS 1024
#define MOST_EXPERTS 4096

#define AT(field) offsetof(synth_values, field)

static const option options[] = {
    {"layers", "N", "MoE layers (default 58)", OPTION_INT, AT(shape.layers), 1, MOST_LAYERS, NULL},
    {"experts", "N", "logical experts of a layer (default 256)", OPTION_INT, AT(shape.experts), 1,
     MOST_EXPERTS, NULL},
    {"steps", "N", "steps, each with counts of every layer (default 16)", OPTION_INT, AT(steps), 1,
     1000000, NULL},
    {"tokens", "N", "tokens of a step (default 4096)", OPTION_INT, AT(shape.tokens), 1, 1000000000,
     NULL},
    {"topk", "N", "experts that a token goes to (default 8)", OPTION_INT, AT(shape.topk), 1,
     MOST_EXPERTS, NULL},
    {"seed", "N", "number that all of it follows from (default 1)", OPTION_SEED, AT(shape.seed), 0,
     0, NULL},
    {"groups", "N",
     "groups, equal runs of expert ids whose popularities are correlated; 1: none (default 8 where "
     "that divides the experts, else 1)",
     OPTION_INT, AT(shape.groups), 1, MOST_EXPERTS, NULL},
    {"domains", "N",
     "kinds of traffic, one after another in equal runs of steps; each shifts the popularities "
     "(default 1)",
     OPTION_INT, AT(shape.domains), 1, 64, NULL},
    {"first-layer", "ID", "model layer id of the first MoE layer (default 0)", OPTION_INT,
     AT(first_layer), 0, MOST_LAYERS - 1, NULL},
    {"format", "csv|jsonl|sglang",
     "of the log; sglang is its logical_count as JSON, with zero rows for the layers before "
     "--first-layer (default jsonl)",
     OPTION_CHOICE, AT(format), 0, 0, log_formats},
    {"out", "FILE", "file to write; - is standard output (default)", OPTION_OUTPUT, AT(out), 0, 0,
     NULL},
};

static const command synth = {
    .name = "synth",
    .usage = "[--layers N] [--experts N] [--steps N] [--tokens N] [--topk N] [--seed N] [--groups "
             "N] [--domains N] [--first-layer ID] [--format csv|jsonl|sglang] [--out FILE]",
    .notes =
        "Makes a log of synthetic counts. What is drawn: each layer's experts get lognormal "
        "popularities (sigma 0.56 in the first layers to 0.86 in the last, 0.23 to 0.41 of it "
        "common to a group; a shift of 0.2 to 0.5 between domains); then in each step every token "
        "draws topk different experts, one after another, by popularity. So the counts of each "
        "step and layer sum to tokens x topk, and no expert gets more than `tokens`. The same "
        "options give the same bytes.",
    .example = "eplb synth --layers 4 --experts 64 --steps 24 --domains 3 --seed 7 --out log.jsonl",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
};

static int check(synth_values *values)
{
    synth_shape *shape = &values->shape;
    if (shape->topk > shape->experts) {
        return usage_error(synth.name, "--topk %d: a token cannot go to more than the %d experts",
                           shape->topk, shape->experts);
    }
    if (values->first_layer + shape->layers > MOST_LAYERS) {
        return usage_error(synth.name,
                           "--first-layer %d: %d layers from there end at layer %d, above the %d "
                           "that is read by default",
                           values->first_layer, shape->layers,
                           values->first_layer + shape->layers - 1, MOST_LAYERS - 1);
    }
    if (shape->groups == 0) {
        shape->groups = shape->experts % 8 == 0 ? 8 : 1;
    }
    if (shape->experts % shape->groups != 0) {
        return usage_error(synth.name, "--groups %d: %d experts do not divide into equal groups",
                           shape->groups, shape->experts);
    }
    if (shape->domains > values->steps) {
        return usage_error(synth.name, "--domains %d: more than the %d steps", shape->domains,
                           values->steps);
    }
    return EXIT_DONE;
}

/* Writes "[1,2,3]"; NULL counts are zeros. */
static void write_array(sink *out, const int32_t *counts, int32_t experts)
{
    sink_text(out, "[");
    for (int32_t e = 0; e < experts; e++) {
        if (e > 0) {
            sink_text(out, ",");
        }
        sink_integer(out, counts != NULL ? counts[e] : 0);
    }
    sink_text(out, "]");
}

static void write_jsonl_row(sink *out, int32_t step, int32_t layer_id, const int32_t *counts,
                            int32_t experts)
{
    sink_text(out, "{\"step\":");
    sink_integer(out, step);
    sink_text(out, ",\"layer\":");
    sink_integer(out, layer_id);
    sink_text(out, ",\"counts\":");
    write_array(out, counts, experts);
    sink_text(out, "}\n");
}

static void write_csv_row(sink *out, int32_t step, int32_t layer_id, const int32_t *counts,
                          int32_t experts)
{
    for (int32_t e = 0; e < experts; e++) {
        const int32_t fields[] = {step, layer_id, e, counts[e]};
        for (int i = 0; i < 4; i++) {
            sink_integer(out, fields[i]);
            sink_text(out, i < 3 ? "," : "\n");
        }
    }
}

/* Writes what separates a row of the nested arrays from the one before, the rows of the dense
 * layers included, and the row. */
static void write_sglang_row(sink *out, int32_t step, int32_t layer, int32_t dense,
                             const int32_t *counts, int32_t experts)
{
    if (layer == 0) {
        sink_text(out, step == 0 ? "[" : "],\n[");
    }
    for (int32_t l = 0; l < dense && layer == 0; l++) {
        write_array(out, NULL, experts);
        sink_text(out, ",\n");
    }
    if (layer > 0) {
        sink_text(out, ",\n");
    }
    write_array(out, counts, experts);
}

static void write_row(sink *out, const synth_values *values, int32_t step, int32_t layer,
                      const int32_t *counts)
{
    int32_t experts = values->shape.experts;
    int32_t layer_id = values->first_layer + layer;
    switch ((log_format)values->format) {
    case LOG_JSONL:
        write_jsonl_row(out, step, layer_id, counts, experts);
        break;
    case LOG_CSV:
        write_csv_row(out, step, layer_id, counts, experts);
        break;
    case LOG_SGLANG:
        write_sglang_row(out, step, layer, values->first_layer, counts, experts);
        break;
    }
}

static int write_log(const synth_values *values, synth_model *model, int32_t *counts, sink *out)
{
    static const char *const before[] = {"", "step,layer,expert,tokens\n", "{\"logical_count\":["};
    static const char *const after[] = {"", "", "]]}\n"};
    sink_open(out, values->out);
    sink_text(out, before[values->format]);
    for (int32_t step = 0; step < values->steps && out->status == EPLB_OK; step++) {
        int64_t domain = (int64_t)step * values->shape.domains / values->steps;
        for (int32_t layer = 0; layer < values->shape.layers; layer++) {
            synth_model_draw(model, (int32_t)domain, layer, counts);
            write_row(out, values, step, layer, counts);
        }
    }
    sink_text(out, after[values->format]);
    return sink_close(out);
}

static int run(synth_values *values)
{
    int exit_code = check(values);
    if (exit_code != EXIT_DONE) {
        return exit_code;
    }
    synth_model *model = synth_model_create(&values->shape);
    int32_t *counts = calloc((size_t)values->shape.experts, sizeof(*counts));
    sink *out = malloc(sizeof(*out));
    exit_code = model != NULL && counts != NULL && out != NULL
                    ? write_log(values, model, counts, out)
                    : out_of_memory();
    synth_model_destroy(model);
    free(counts);
    free(out);
    return exit_code;
}

int command_synth(int argc, char **argv)
{
    synth_values values = {
        .shape = {.layers = 58, .experts = 256, .topk = 8, .tokens = 4096, .domains = 1, .seed = 1},
        .steps = 16,
        .out = "-",
    };
    int exit_code;
    if (options_parse(&synth, argc, argv, &values, &exit_code)) {
        exit_code = run(&values);
    }
    options_release(&synth, &values);
    return exit_code;
}
