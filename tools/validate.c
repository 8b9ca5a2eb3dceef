/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "engines.h"
#include "formats.h"
#include "message.h"
#include "model_options.h"
#include "options.h"
#include "validate_report.h"

typedef struct validate_values {
    const char *file;
    const char *from;
    const char *engine;
    const char *model;
    id_list dense_layers;
    int32_t gpus;
    int32_t gpus_per_node;
    int32_t experts;
    bool explain;
    bool json;
} validate_values;

#define AT(field) offsetof(validate_values, field)

static const option options[] = {
    {"gpus", "N", "GPUs that share the slots evenly; may be left out where the file says it",
     OPTION_INT, AT(gpus), 1, EPLB_MAX_GPUS, NULL},
    {"gpus-per-node", "N", "GPUs of a node (default: all on one node)", OPTION_INT,
     AT(gpus_per_node), 1, EPLB_MAX_GPUS, NULL},
    {"experts", "N", "logical experts of a layer (default: one more than the largest in the file)",
     OPTION_INT, AT(experts), 1, EPLB_MAX_EXPERTS, NULL},
    {"engine", "NAME",
     "check the rules of this engine, too: sglang, trtllm, vllm, ascend, omni or fastdeploy",
     OPTION_TEXT, AT(engine), 0, 0, NULL},
    {"explain", NULL,
     "say what the engine does with a file that breaks a rule (without --engine: the one that "
     "loads such files)",
     OPTION_FLAG, AT(explain), 0, 0, NULL},
    {"model", "FILE",
     "config.json of the model (Hugging Face), with --engine: says the experts, and the layers "
     "that the engine needs",
     OPTION_TEXT, AT(model), 0, 0, NULL},
    {"dense-layers", "LIST",
     "layers without experts, such as 0-2 or none, where the config does not tell", OPTION_IDS,
     AT(dense_layers), 0, EPLB_MAX_LAYERS - 1, NULL},
    {"from", "FORMAT", "format of the file (default: recognised by content)", OPTION_TEXT, AT(from),
     0, 0, NULL},
    {"json", NULL, "print one JSON document instead of the list", OPTION_FLAG, AT(json), 0, 0,
     NULL},
};

static const command validate = {
    .name = "validate",
    .usage = "FILE --gpus N [--gpus-per-node N] [--experts N] [--engine NAME [--model FILE "
             "[--dense-layers LIST]]] [--explain] [--from FORMAT] [--json]",
    .notes = "Checks a placement: every expert has a replica in every layer, no expert is twice on "
             "a GPU, every slot is filled. Engines compute wrong outputs or fail with maps that "
             "break these rules. With --engine also what that engine asks of the file, whether it "
             "checks it or not. Exits with 0 when the placement is valid and 1 when it is not.",
    .example = "eplb validate map.json --gpus 32 --experts 256",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .operands = {"FILE"},
    .operand_targets = {AT(file)},
    .lists_formats = true,
};

/* What a run makes of its options. */
typedef struct job {
    const validate_values *values;
    const eplb_format *from;
    const eplb_engine *engine;
    model_answers answers;
    int32_t experts;
} job;

static int check_options(const validate_values *values)
{
    if (values->model != NULL && values->engine == NULL) {
        return usage_error(validate.name,
                           "--model without --engine: engines differ in the layers they want");
    }
    if (values->dense_layers.items != NULL && values->model == NULL) {
        return usage_error(validate.name, "--dense-layers without --model");
    }
    return EXIT_DONE;
}

static int find_names(job *self)
{
    int exit_code = find_engine(validate.name, self->values->engine, &self->engine);
    if (exit_code == EXIT_DONE) {
        exit_code =
            find_format(validate.name, "from", self->values->from,
                        EPLB_FORMAT_READS_PLACEMENT | EPLB_FORMAT_WRITES_PLACEMENT, &self->from);
    }
    return exit_code;
}

/* Says what the engine does with files that could not be read; without --engine it is the one of
 * --from, if that was given. */
static void explain_unreadable(const job *self, eplb_status status)
{
    bool is_content = status == EPLB_ERROR_PARSE || status == EPLB_ERROR_DATA;
    const eplb_engine *engine =
        self->engine != NULL ? self->engine : eplb_engine_of_format(self->from);
    const char *text = eplb_engine_explain(engine, EPLB_ENGINE_UNREADABLE);
    if (self->values->explain && is_content && text != NULL) {
        fprintf(stderr, "eplb: %s\n", text);
    }
}

static int read_file(const job *self, eplb_placement **placement, const eplb_format **format)
{
    const validate_values *values = self->values;
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    hooks.log = print_warning;
    eplb_read_options reading = reading_options(self->from, self->experts);
    reading.gpus = values->gpus;
    reading.gpus_per_node = values->gpus_per_node;
    eplb_error error;
    eplb_status status =
        eplb_placement_read(placement, &hooks, values->file, &reading, format, &error);
    if (status == EPLB_ERROR_ARGUMENT && values->gpus == 0) {
        return usage_error(validate.name, "%s with --gpus N", error.message);
    }
    if (status != EPLB_OK) {
        model_explain(&self->answers, &error);
        int exit_code = fail(&error);
        explain_unreadable(self, status);
        return exit_code;
    }
    status = check_loads_format(self->engine, *format, values->file, &error);
    return status == EPLB_OK ? EXIT_DONE : fail(&error);
}

static int report(const job *self, const eplb_placement *placement, const eplb_format *format)
{
    const validate_values *values = self->values;
    validate_report report = {.file = values->file,
                              .format = format,
                              .placement = placement,
                              .engine = self->engine,
                              .explain = values->explain};
    eplb_engine_model_init(&report.model);
    report.model.layers = self->answers.config.layers;
    if (report.model.layers > 0) {
        report.model.dense_count = values->dense_layers.count;
        report.model.dense_layers = values->dense_layers.items;
    } else if (self->engine != NULL) {
        fprintf(stderr, "eplb: the number of layers is not checked%s\n",
                values->model == NULL ? " (--model config.json checks it)"
                                      : ": the model's config does not say it");
    }
    return values->json ? validate_print_json(&report) : validate_print_list(&report);
}

static int read_and_report(const job *self)
{
    const eplb_format *format;
    eplb_placement *placement = NULL;
    int exit_code = read_file(self, &placement, &format);
    if (exit_code == EXIT_DONE) {
        exit_code = report(self, placement, format);
    }
    eplb_placement_destroy(&placement);
    return exit_code;
}

static int run(validate_values *values)
{
    job self = {.values = values, .experts = values->experts};
    int exit_code = check_options(values);
    if (exit_code == EXIT_DONE) {
        exit_code = find_names(&self);
    }
    if (exit_code == EXIT_DONE) {
        const model_questions open = {.experts = &self.experts,
                                      .dense_layers = &values->dense_layers};
        exit_code = model_answer(&self.answers, values->model, &open);
        if (exit_code == EXIT_DONE) {
            exit_code = read_and_report(&self);
        }
        model_answers_release(&self.answers);
    }
    return exit_code;
}

int command_validate(int argc, char **argv)
{
    validate_values values = {0};
    int exit_code;
    if (options_parse(&validate, argc, argv, &values, &exit_code)) {
        exit_code = run(&values);
    }
    options_release(&validate, &values);
    return exit_code;
}
