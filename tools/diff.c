/* SPDX-License-Identifier: MIT */
#include "diff.h"

#include "commands.h"
#include "draft_layers.h"
#include "formats.h"
#include "load_reading.h"
#include "message.h"
#include "output.h"
#include "standard_input.h"

typedef struct diff_values {
    const char *old_path;
    const char *new_path;
    text_list loads;
    counting_values counting;
    int32_t slices;
    int32_t objective;
    const char *from;
    int32_t gpus;
    int32_t gpus_per_node;
    int32_t experts;
    id_list dense_layers;
    const char *model;
    int64_t expert_bytes;
    price_values price;
    int32_t mode;
    int32_t buffer_slots; /* -1: as many as it takes */
    bool json;
} diff_values;

const char *const diff_modes[] = {"in-place", "staged", NULL};

#define AT(field) offsetof(diff_values, field)

static const option options[] = {
    {"load", "SOURCE", SCENARIOS_HELP, OPTION_TEXTS, AT(loads), 0, 0, NULL},
    {"counted-under", "FILE", COUNTED_UNDER_HELP, OPTION_TEXT, AT(counting.counted_under), 0, 0,
     NULL},
    {"array", "NAME", ARRAY_HELP, OPTION_TEXT, AT(counting.array), 0, 0, NULL},
    {"slices", "N", SLICES_HELP, OPTION_INT, AT(slices), 1, EPLB_MAX_SCENARIOS, NULL},
    {"objective", "mean-of-max|max-of-max|sum",
     "what the imbalance of several scenarios is: their mean (default), the largest, or that of "
     "their summed tokens",
     OPTION_CHOICE, AT(objective), 0, 0, objective_choices},
    {"from", "FORMAT", "format of both maps (default: recognised by content)", OPTION_TEXT,
     AT(from), 0, 0, NULL},
    {"gpus", "N", "GPUs that share the slots evenly; may be left out where the files say it",
     OPTION_INT, AT(gpus), 1, EPLB_MAX_GPUS, NULL},
    {"gpus-per-node", "N", "GPUs of a node, for copies that stay on one", OPTION_INT,
     AT(gpus_per_node), 1, EPLB_MAX_GPUS, NULL},
    {"experts", "N", "logical experts of a layer (default: as the loads or the maps say)",
     OPTION_INT, AT(experts), 1, EPLB_MAX_EXPERTS, NULL},
    {"dense-layers", "LIST", DENSE_LAYERS_HELP, OPTION_IDS, AT(dense_layers), 0,
     EPLB_MAX_LAYERS - 1, NULL},
    {"model", "FILE", MODEL_HELP, OPTION_TEXT, AT(model), 0, 0, NULL},
    {"expert-bytes", "SIZE", EXPERT_BYTES_HELP, OPTION_SIZE, AT(expert_bytes), 1, 0, NULL},
    {"bandwidth", "INTRA,INTER", BANDWIDTH_HELP, OPTION_SIZES, AT(price.bandwidth), 1, 0, NULL},
    {"interval", "STEPS", INTERVAL_HELP, OPTION_INT, AT(price.interval), 1, INT32_MAX, NULL},
    {"step-time", "SECONDS", STEP_TIME_HELP, OPTION_REAL, AT(price.step_time), 0, 3600, NULL},
    {"stall", "SHARE", STALL_HELP, OPTION_AMOUNT, AT(price.stall), 0, 1, NULL},
    {"mode", "in-place|staged",
     "how slots are written: in place, while the engine routes around them (default), or staged in "
     "buffers, for engines that cannot, such as SGLang",
     OPTION_CHOICE, AT(mode), 0, 0, diff_modes},
    {"buffer-slots", "N",
     "slots that each GPU has beside those of the maps (default: as many as it takes)", OPTION_INT,
     AT(buffer_slots), 0, EPLB_MAX_SLOTS, NULL},
    {"json", NULL, "print one JSON document instead of the table", OPTION_FLAG, AT(json), 0, 0,
     NULL},
};

static const command diff = {
    .name = "diff",
    .usage = "OLD NEW [--load SOURCE]... [--gpus N] [--json] [OPTION...]",
    .notes =
        "Says what lies between two placements: copies of experts' weights, layer by layer and GPU "
        "by GPU, replicas that experts gain and lose, where the weights come from and in how many "
        "rounds, and, with the loads, the imbalance before and after and when the copies have paid "
        "for themselves. A copy is an expert on a GPU that did not have it; slots that are renamed "
        "inside a GPU cost nothing.",
    .example = "eplb diff map.json map.json --gpus 32 --load counts.jsonl",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .operands = {"OLD", "NEW"},
    .operand_targets = {AT(old_path), AT(new_path)},
    .lists_formats = true,
};

/* What the command holds. */
typedef struct diff_job {
    const diff_values *values;
    model_answers model;
    const eplb_format *from;
    eplb_hooks hooks;
    eplb_load *load; /* NULL: none */
    diff_maps maps;
} diff_job;

static int check_values(const diff_values *values)
{
    int32_t uses = uses_of_standard_input(&values->loads, values->old_path) +
                   uses_of_standard_input(&(text_list){0}, values->new_path);
    const char *of_load = values->slices > 0                       ? "slices"
                          : values->objective != 0                 ? "objective"
                          : values->counting.counted_under != NULL ? "counted-under"
                          : values->counting.array != NULL         ? "array"
                          : price_option_given(&values->price) != NULL
                              ? price_option_given(&values->price)
                              : NULL;
    if (uses > 1) {
        return usage_error(diff.name, "OLD, NEW and --load: standard input can be read once");
    }
    if (values->loads.count == 0 && of_load != NULL) {
        return usage_error(diff.name, "--%s goes with --load", of_load);
    }
    if (values->mode == EPLB_MIGRATION_STAGED && values->buffer_slots == 0) {
        return usage_error(diff.name, "--mode staged needs --buffer-slots of at least 1");
    }
    int exit_code = counting_check(&values->counting, diff.name);
    return exit_code == EXIT_DONE ? price_values_check(&values->price, diff.name) : exit_code;
}

/* As either map says it: where both do, they are compared later. */
static int32_t find_draft_layers(const diff_values *values)
{
    int32_t count = draft_layers_of(values->old_path);
    return count >= 0 ? count : draft_layers_of(values->new_path);
}

static eplb_status read_load(diff_job *self, eplb_error *error)
{
    const diff_values *values = self->values;
    if (values->loads.count == 0) {
        return EPLB_OK;
    }
    bool assumed; /* the maps say how many experts there are */
    const load_request request = {.sources = &values->loads,
                                  .experts = values->experts,
                                  .counting = &values->counting,
                                  .current = values->old_path,
                                  .dense_layers = &values->dense_layers,
                                  .draft_layers = find_draft_layers(values),
                                  .slices =
                                      values->objective == EPLB_OBJECTIVE_SUM ? 1 : values->slices,
                                  .model = &self->model};
    return read_scenarios(&self->load, &request, &assumed, &self->hooks, error);
}

static diff_request request_of(const diff_job *self)
{
    const diff_values *values = self->values;
    int32_t experts = self->load != NULL ? eplb_load_experts(self->load) : values->experts;
    diff_request request = {.old_path = values->old_path,
                            .new_path = values->new_path,
                            .reading = reading_options(self->from, experts),
                            .dense_layers = &values->dense_layers};
    request.reading.gpus = values->gpus;
    request.reading.gpus_per_node = values->gpus_per_node;
    return request;
}

static int tell(const diff_job *self, const diff_request *request)
{
    const diff_values *values = self->values;
    diff_subject subject = {.request = request,
                            .maps = &self->maps,
                            .load = self->load,
                            .objective = (eplb_objective)values->objective,
                            .price = &values->price,
                            .expert_bytes = values->expert_bytes,
                            .has_nodes = values->gpus_per_node > 0};
    eplb_migration_options_init(&subject.migration);
    subject.migration.mode = values->mode;
    subject.migration.buffer_slots = values->buffer_slots;
    diff_report report;
    eplb_error error;
    if (diff_report_create(&report, &subject, &error) != EPLB_OK) {
        return fail(&error);
    }
    int exit_code = values->json ? diff_report_print_json(&report) : diff_report_print(&report);
    diff_report_destroy(&report);
    return exit_code;
}

static int run(diff_job *self)
{
    eplb_error error;
    if (read_load(self, &error) != EPLB_OK) {
        return fail(&error);
    }
    const diff_request request = request_of(self);
    eplb_status status = diff_maps_read(&self->maps, &request, self->load, &self->hooks, &error);
    if (status == EPLB_ERROR_ARGUMENT && self->values->gpus == 0) {
        return usage_error(diff.name, "%s with --gpus N", error.message);
    }
    if (status != EPLB_OK && self->load != NULL) {
        counting_explain_current(&self->values->counting, request.old_path, self->load, &error);
    }
    return status == EPLB_OK ? tell(self, &request) : fail(&error);
}

static void release(diff_job *self)
{
    diff_maps_release(&self->maps);
    eplb_load_destroy(&self->load);
    model_answers_release(&self->model);
}

static int ask_model(diff_values *values, model_answers *model)
{
    const model_questions open = {.experts = &values->experts,
                                  .dense_layers = &values->dense_layers,
                                  .expert_bytes = &values->expert_bytes};
    return model_answer(model, values->model, &open);
}

int command_diff(int argc, char **argv)
{
    diff_values values = {.price.stall = NOT_GIVEN, .buffer_slots = -1};
    diff_job job = {.values = &values};
    eplb_hooks_init(&job.hooks);
    job.hooks.log = print_warning;
    int exit_code;
    if (options_parse(&diff, argc, argv, &values, &exit_code)) {
        exit_code = check_values(&values);
        exit_code =
            exit_code == EXIT_DONE
                ? find_format(diff.name, "from", values.from,
                              EPLB_FORMAT_READS_PLACEMENT | EPLB_FORMAT_WRITES_PLACEMENT, &job.from)
                : exit_code;
        exit_code = exit_code == EXIT_DONE ? ask_model(&values, &job.model) : exit_code;
        exit_code = exit_code == EXIT_DONE ? run(&job) : exit_code;
    }
    release(&job);
    options_release(&diff, &values);
    return exit_code;
}
