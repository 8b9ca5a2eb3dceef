/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "current.h"
#include "dense_layers.h"
#include "draft_layers.h"
#include "exact.h"
#include "formats.h"
#include "load_reading.h"
#include "memory.h"
#include "message.h"
#include "output.h"
#include "output_format.h"
#include "pins.h"
#include "plan_options.h"
#include "plan_rebalance.h"
#include "plan_report.h"
#include "plan_weights.h"
#include "processors.h"
#include "progress.h"

/* What the command holds while it plans. */
typedef struct plan_job {
    const plan_values *values;
    model_answers model;
    const eplb_format *from;
    const eplb_format *to;
    eplb_hooks hooks;
    int32_t draft_layers; /* of the loads' last ones, as far as it is known before they are read;
                           * -1: not at all */
    eplb_load *load;
    bool assumes_experts;    /* nothing says that the counts are of logical experts, not slots */
    eplb_placement *current; /* NULL: none */
    eplb_cluster *cluster;
    exact *exact;    /* NULL: no exact optimisation */
    int64_t *budget; /* [gpus] slots of all layers together; NULL: layers are alike */
    bool rebalances; /* the plan goes from the current placement with few copies */
    price_terms terms;
    eplb_plan *plan;
    eplb_plan *without_groups; /* NULL: the plan keeps no groups on nodes */
    eplb_placement *repaired;  /* NULL: the plan is valid or stays as it is */
    int64_t repaired_slots;
    eplb_placement *weighted; /* NULL: not asked for */
} plan_job;

static int find_formats(plan_job *self)
{
    const plan_values *values = self->values;
    const char *name = plan_command.name;
    const char *out = values->out != NULL ? values->out : "-";
    int exit_code = find_format(name, "from", values->from, EPLB_FORMAT_READS_COUNTS, &self->from);
    if (exit_code == EXIT_DONE) {
        exit_code = find_format(name, "to", values->to, EPLB_FORMAT_WRITES_PLACEMENT, &self->to);
    }
    return exit_code == EXIT_DONE ? find_output_format(name, out, true, &self->to) : exit_code;
}

/* A contradiction is found before logs are read, which may take long. */
static int find_draft_layers(plan_job *self)
{
    const plan_values *values = self->values;
    int32_t said = draft_layers_of(values->current);
    bool is_given = values->draft_layers != NOT_GIVEN;
    self->draft_layers = is_given ? values->draft_layers : said;
    return is_given && said >= 0 && said != values->draft_layers
               ? usage_error(plan_command.name, "--draft-layers %d, but %s has %d",
                             values->draft_layers, values->current, said)
               : EXIT_DONE;
}

static eplb_status read_load(plan_job *self, eplb_error *error)
{
    const plan_values *values = self->values;
    const load_request request = {.sources = &values->loads,
                                  .from = self->from,
                                  .experts = values->experts,
                                  .counting = &values->counting,
                                  .current = values->current,
                                  .dense_layers = &values->dense_layers,
                                  .draft_layers = self->draft_layers,
                                  .slices =
                                      values->objective == EPLB_OBJECTIVE_SUM ? 1 : values->slices,
                                  .model = &self->model};
    return read_scenarios(&self->load, &request, &self->assumes_experts, &self->hooks, error);
}

/* Formats without numbers of layers would give those behind a missing one wrong numbers, and
 * formats with all layers would take it for dense. */
static eplb_status check_layers(plan_job *self, eplb_error *error)
{
    const id_list *dense = &self->values->dense_layers;
    uint32_t flags = eplb_format_flags(self->to);
    bool needs_all =
        (flags & EPLB_FORMAT_ALL_MODEL_LAYERS) != 0 || (flags & EPLB_FORMAT_MODEL_LAYER_IDS) == 0;
    int32_t missing =
        self->values->out != NULL && needs_all ? missing_moe_layer(self->load, dense) : -1;
    if (missing < 0) {
        return EPLB_OK;
    }
    bool is_known = dense->items != NULL;
    return eplb_error_set(
        error, EPLB_ERROR_DATA, "the loads have no layer %d, and %s: %s needs every MoE layer%s",
        missing, is_known ? "it is not dense" : "nothing says that it is dense",
        eplb_format_name(self->to), is_known ? "" : "; --dense-layers LIST, or --model says it");
}

/* What a current placement says that could not be read twice. */
static eplb_status take_draft_layers(plan_job *self, const eplb_format *format, eplb_error *error)
{
    const plan_values *values = self->values;
    if (eplb_format_draft_layers(format) == 0) {
        return EPLB_OK;
    }
    self->draft_layers = eplb_placement_draft_layers(self->current);
    return values->draft_layers == NOT_GIVEN || values->draft_layers == self->draft_layers
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_DATA, "--draft-layers %d, but %s has %d",
                                values->draft_layers, values->current, self->draft_layers);
}

static eplb_status read_current_of(plan_job *self, eplb_error *error)
{
    const plan_values *values = self->values;
    if (values->current == NULL) {
        return EPLB_OK;
    }
    eplb_read_options reading = reading_options(NULL, eplb_load_experts(self->load));
    reading.gpus = values->gpus;
    reading.gpus_per_node = values->gpus_per_node;
    const eplb_format *format;
    eplb_status status = read_current(&self->current, values->current, self->load, &reading,
                                      &self->hooks, &format, error);
    if (status != EPLB_OK) {
        counting_explain_current(&values->counting, values->current, self->load, error);
        return status;
    }
    status = take_draft_layers(self, format, error);
    if (status != EPLB_OK) {
        return status;
    }
    /* Layers with different slots can be planned afresh only; who asks for more gets the error. */
    bool is_even = eplb_placement_layer_slots(self->current, 0) == NULL;
    self->rebalances =
        plan_rebalances(values) && (is_even || plan_rebalance_option_given(values) != NULL);
    self->terms = price_terms_make(&values->price, values->expert_bytes,
                                   eplb_load_layers(self->load), values->gpus_per_node > 0);
    return EPLB_OK;
}

/* The current placement says it, too, where its file cannot. */
static eplb_status mark_draft_layers(plan_job *self, eplb_error *error)
{
    int32_t count = self->draft_layers > 0 ? self->draft_layers : 0;
    eplb_status status =
        check_draft_layers(count, eplb_load_layer_ids(self->load), eplb_load_layers(self->load),
                           eplb_load_model_layers(self->load), "the loads", error);
    return status == EPLB_OK && self->current != NULL
               ? eplb_placement_set_draft_layers(self->current, count, error)
               : status;
}

/* Slots per GPU. When --redundant was given the error must say so: it speaks of slots. */
static eplb_status share_slots(const plan_job *self, int32_t *slots_per_gpu, eplb_error *error)
{
    const plan_values *values = self->values;
    int32_t experts = eplb_load_experts(self->load);
    if (values->slots != NOT_GIVEN) {
        return eplb_slots_per_gpu(experts, values->gpus, values->slots, slots_per_gpu, error);
    }
    eplb_error inner;
    int32_t slots = experts + values->redundant;
    eplb_status status = eplb_slots_per_gpu(experts, values->gpus, slots, slots_per_gpu, &inner);
    return status == EPLB_OK ? EPLB_OK
                             : eplb_error_set(error, status, "%d redundant experts: %.400s",
                                              values->redundant, inner.message);
}

static eplb_status make_even_cluster(plan_job *self, eplb_error *error)
{
    int32_t slots_per_gpu;
    eplb_status status = share_slots(self, &slots_per_gpu, error);
    return status == EPLB_OK
               ? eplb_cluster_create(&self->cluster, &self->hooks, self->values->gpus,
                                     slots_per_gpu, self->values->gpus_per_node, error)
               : status;
}

/* The slots that the layers share, and GPUs without any of their own. */
static eplb_status make_budget(plan_job *self, const gpu_memory *memory, eplb_error *error)
{
    const plan_values *values = self->values;
    self->budget = calloc((size_t)values->gpus, sizeof(*self->budget));
    if (self->budget == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    eplb_status status = EPLB_OK;
    if (memory->sizes->items != NULL) {
        status = memory_budget(self->budget, memory, values->gpus, error);
    } else {
        for (int32_t g = 0; g < values->gpus; g++) {
            self->budget[g] = (int64_t)values->slots * eplb_load_layers(self->load) / values->gpus;
        }
    }
    return status == EPLB_OK ? eplb_cluster_create(&self->cluster, &self->hooks, values->gpus, 1,
                                                   values->gpus_per_node, error)
                             : status;
}

static eplb_status make_live_cluster(plan_job *self, eplb_error *error)
{
    const plan_values *values = self->values;
    const gpu_memory memory = {.sizes = &values->gpu_memory,
                               .reserve = values->reserve,
                               .expert_bytes = values->expert_bytes};
    if (values->layer_budget == BUDGET_ADAPTIVE) {
        return make_budget(self, &memory, error);
    }
    return values->gpu_memory.items == NULL
               ? make_even_cluster(self, error)
               : memory_cluster(&self->cluster, &memory, values->gpus, values->gpus_per_node,
                                eplb_load_layers(self->load), eplb_load_experts(self->load),
                                &self->hooks, error);
}

static eplb_status make_cluster(plan_job *self, eplb_error *error)
{
    eplb_status status = make_live_cluster(self, error);
    const id_list *dead = &self->values->dead_gpus;
    for (int32_t i = 0; i < dead->count && status == EPLB_OK; i++) {
        status = eplb_cluster_set_alive(self->cluster, dead->items[i], 0, error);
    }
    return status;
}

/* Experts of the current placement that only dead GPUs have. */
static eplb_status check_lost_experts(plan_job *self, eplb_error *error)
{
    if (self->current == NULL || self->values->lost_experts != LOST_FAIL) {
        return EPLB_OK;
    }
    for (int32_t l = 0; l < eplb_load_layers(self->load); l++) {
        int32_t some[LOST_SHOWN];
        int32_t count;
        eplb_status status = eplb_placement_lost_experts(self->current, self->cluster, l, some,
                                                         LOST_SHOWN, &count, error);
        if (status == EPLB_OK && count > 0) {
            char list[16 * LOST_SHOWN];
            status = eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                                    "layer %d: with the dead GPUs the last copies of experts %s "
                                    "are lost; --lost-experts load plans with weights from storage",
                                    eplb_load_layer_ids(self->load)[l],
                                    lost_list(some, count, list, sizeof(list)));
        }
        if (status != EPLB_OK) {
            return status;
        }
    }
    return EPLB_OK;
}

static eplb_status open_exact(plan_job *self, eplb_error *error)
{
    const plan_values *values = self->values;
    return values->ilp == ILP_OFF ? EPLB_OK
                                  : exact_open(&self->exact, &self->hooks, values->ilp == ILP_ON,
                                               values->ilp_nodes, error);
}

static int32_t groups_of(const plan_values *values)
{
    return values->groups != NOT_GIVEN ? values->groups : 1;
}

static eplb_status make_plan_with(plan_job *self, int32_t groups, eplb_plan **plan,
                                  eplb_error *error)
{
    const plan_values *values = self->values;
    eplb_pin *pins;
    eplb_status status = make_pins(&pins, &values->pins, self->load, values->gpus, error);
    if (status != EPLB_OK) {
        free(pins);
        return status;
    }
    progress shown;
    progress_begin(&shown);
    eplb_plan_options planning;
    eplb_plan_options_init(&planning);
    planning.algorithm =
        values->algorithm == EPLB_ALGORITHM_EPLB ? EPLB_ALGORITHM_EPLB : EPLB_ALGORITHM_SEARCH;
    planning.effort = values->effort;
    planning.threads = planning_threads(values->threads);
    planning.objective = values->objective;
    planning.min_replicas = values->min_replicas;
    planning.max_replicas = values->max_replicas;
    planning.spread_nodes = values->spread_nodes ? 1 : 0;
    planning.groups = groups;
    planning.node_cost = values->node_cost;
    planning.draft_layers = self->draft_layers;
    planning.pin_count = values->pins.count;
    planning.pins = pins;
    planning.refiner = exact_refiner(self->exact);
    planning.progress = progress_report;
    planning.progress_context = &shown;
    status = self->rebalances
                 ? plan_rebalance_create(plan, &self->terms, values, self->load, self->cluster,
                                         self->current, &planning, exact_fewest_finder(self->exact),
                                         &self->hooks, error)
             : self->budget != NULL
                 ? eplb_plan_create_in_budget(plan, &self->hooks, self->load, self->cluster,
                                              self->budget, self->current, &planning, error)
                 : eplb_plan_create(plan, &self->hooks, self->load, self->cluster, self->current,
                                    &planning, error);
    progress_end(&shown);
    free(pins);
    return status;
}

/* Groups on nodes are never free: a second plan tells their price. */
static eplb_status make_plan(plan_job *self, eplb_error *error)
{
    int32_t groups = groups_of(self->values);
    eplb_status status = make_plan_with(self, groups, &self->plan, error);
    return status == EPLB_OK && groups > 1 ? make_plan_with(self, 1, &self->without_groups, error)
                                           : status;
}

static eplb_status repair(plan_job *self, eplb_error *error)
{
    const eplb_placement *planned = eplb_plan_placement(self->plan);
    if (!self->values->repair || eplb_placement_validate(planned, 0, NULL) == EPLB_OK) {
        return EPLB_OK;
    }
    eplb_status status = eplb_placement_clone(&self->repaired, &self->hooks, planned, error);
    return status == EPLB_OK
               ? eplb_placement_repair(self->repaired, self->load, &self->repaired_slots, error)
               : status;
}

static eplb_status place_weighted(plan_job *self, eplb_error *error)
{
    if (self->values->algorithm != ALGORITHM_WEIGHTED) {
        return EPLB_OK;
    }
    eplb_status status = plan_place_weighted(&self->weighted, eplb_plan_placement(self->plan),
                                             self->load, &self->hooks, error);
    if (status == EPLB_OK) {
        print_warning(NULL, EPLB_LOG_WARNING,
                      "engines that split an expert's tokens evenly over its replicas do not get "
                      "the balance that weights give, but what the report says");
    }
    return status;
}

static const eplb_placement *result_of(const plan_job *self)
{
    return self->weighted != NULL   ? self->weighted
           : self->repaired != NULL ? self->repaired
                                    : eplb_plan_placement(self->plan);
}

static bool is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

/* Some engines take a map with a wrong number of layers without a word. */
static void warn_of_unknown_layers(const plan_job *self)
{
    int32_t layers = eplb_load_layers(self->load);
    if ((eplb_format_flags(self->to) & EPLB_FORMAT_MODEL_LAYER_IDS) == 0 ||
        eplb_load_model_layers(self->load) > 0) {
        return;
    }
    eplb_error line;
    eplb_error_set(&line, EPLB_OK,
                   "the loads do not say which layers of the model are dense: the last layer in %s "
                   "has the number %d; --dense-layers LIST, or none, says it",
                   is_stdout(self->values->out) ? "the map" : self->values->out,
                   eplb_load_layer_ids(self->load)[layers - 1]);
    print_warning(NULL, EPLB_LOG_WARNING, line.message);
}

static eplb_status check_valid(const plan_report *report, eplb_error *error)
{
    return report->valid ? EPLB_OK
                         : eplb_error_set(error, EPLB_ERROR_DATA,
                                          "the plan is not valid and is not written: %s; --repair "
                                          "mends it",
                                          report->violation);
}

static eplb_status write_placement(const plan_job *self, const plan_report *report,
                                   eplb_error *error)
{
    if (check_valid(report, error) != EPLB_OK) {
        return EPLB_ERROR_DATA;
    }
    eplb_status status =
        eplb_placement_write(result_of(self), &self->hooks, self->values->out, self->to, error);
    if (status == EPLB_OK) {
        warn_of_unknown_layers(self);
    }
    return status;
}

/* The weights' file is ready before the placement's appears, and appears after it. */
static int write_both(const plan_job *self, const plan_report *report)
{
    eplb_error error;
    if (check_valid(report, &error) != EPLB_OK) {
        return fail(&error);
    }
    sink *weights = malloc(sizeof(*weights));
    if (weights == NULL) {
        return out_of_memory();
    }
    sink_open(weights, self->values->weights);
    int exit_code;
    if (plan_write_weights(weights, result_of(self), self->load) == EPLB_OK &&
        self->values->out != NULL && write_placement(self, report, &error) != EPLB_OK) {
        sink_discard(weights);
        exit_code = fail(&error);
    } else {
        exit_code = sink_close(weights);
    }
    free(weights);
    return exit_code;
}

static int write_files(const plan_job *self, const plan_report *report)
{
    eplb_error error;
    if (self->values->weights != NULL) {
        return write_both(self, report);
    }
    return self->values->out != NULL && write_placement(self, report, &error) != EPLB_OK
               ? fail(&error)
               : EXIT_DONE;
}

/* Writes the placement and its weights, then tells about them. */
static int deliver(const plan_job *self, plan_report *report)
{
    const plan_values *values = self->values;
    report->algorithm = plan_algorithms[values->algorithm];
    report->repaired_slots = self->repaired_slots;
    report->out = values->out;
    report->format = self->to;
    int written = write_files(self, report);
    if (written != EXIT_DONE) {
        return written;
    }
    if (self->assumes_experts) {
        note_assumed_experts(eplb_load_experts(self->load));
    }
    int exit_code =
        values->detailed_exitcode && report->proposes_changes ? EXIT_CHANGES : EXIT_DONE;
    if (values->json) {
        return plan_report_print_json(report, exit_code);
    }
    bool is_taken = is_stdout(values->out) || is_stdout(values->weights);
    plan_report_print(report, is_taken ? stderr : stdout);
    return output_finish(exit_code);
}

static int run(plan_job *self)
{
    int known = find_draft_layers(self);
    if (known != EXIT_DONE) {
        return known;
    }
    eplb_error error;
    eplb_status (*const steps[])(plan_job *, eplb_error *) = {
        read_load,    check_layers,       read_current_of, mark_draft_layers,
        make_cluster, check_lost_experts, open_exact,      make_plan,
        repair,       place_weighted};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (steps[i](self, &error) != EPLB_OK) {
            return fail(&error);
        }
    }
    plan_report report;
    const plan_subject subject = {.load = self->load,
                                  .objective = (eplb_objective)self->values->objective,
                                  .plan = self->plan,
                                  .groups = groups_of(self->values),
                                  .without_groups = self->without_groups,
                                  .is_refined = self->exact != NULL,
                                  .has_node_cost = self->values->node_cost >= 0.0,
                                  .node_cost = self->values->node_cost,
                                  .has_layer_budget = self->budget != NULL,
                                  .placement = result_of(self),
                                  .current = self->current,
                                  .rebalance = self->rebalances ? &self->terms : NULL,
                                  .rebalance_values = self->values,
                                  .expert_bytes = self->values->expert_bytes};
    if (plan_report_create(&report, &subject, &error) != EPLB_OK) {
        return fail(&error);
    }
    int exit_code = deliver(self, &report);
    plan_report_destroy(&report);
    return exit_code;
}

static void release(plan_job *self)
{
    eplb_placement_destroy(&self->weighted);
    eplb_placement_destroy(&self->repaired);
    eplb_plan_destroy(&self->without_groups);
    eplb_plan_destroy(&self->plan);
    exact_close(&self->exact);
    eplb_cluster_destroy(&self->cluster);
    free(self->budget);
    eplb_placement_destroy(&self->current);
    eplb_load_destroy(&self->load);
    model_answers_release(&self->model);
}

/* --groups is never chosen silently: whole groups on one node cost balance. */
static void note_groups(const plan_values *values, const model_config *model)
{
    if (values->algorithm == EPLB_ALGORITHM_EPLB && values->gpus_per_node > 0 &&
        values->groups == NOT_GIVEN && model->groups > 1) {
        fprintf(stderr,
                "eplb: the model has %d groups of experts: --groups %d keeps each on one "
                "node\n",
                model->groups, model->groups);
    }
}

static int ask_model(plan_values *values, model_answers *model)
{
    const model_questions open = {.experts = &values->experts,
                                  .dense_layers = &values->dense_layers,
                                  .expert_bytes = &values->expert_bytes,
                                  .needs_expert_bytes = values->gpu_memory.items != NULL};
    int exit_code = model_answer(model, values->model, &open);
    note_groups(values, &model->config);
    return exit_code;
}

int command_plan(int argc, char **argv)
{
    plan_values values = plan_values_default;
    plan_job job = {.values = &values};
    eplb_hooks_init(&job.hooks);
    job.hooks.log = print_warning;
    int exit_code;
    if (options_parse(&plan_command, argc, argv, &values, &exit_code)) {
        exit_code = plan_values_check(&values);
        exit_code = exit_code == EXIT_DONE ? find_formats(&job) : exit_code;
        exit_code = exit_code == EXIT_DONE ? ask_model(&values, &job.model) : exit_code;
        exit_code = exit_code == EXIT_DONE ? run(&job) : exit_code;
    }
    release(&job);
    options_release(&plan_command, &values);
    return exit_code;
}
