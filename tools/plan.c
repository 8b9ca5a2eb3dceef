/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "formats.h"
#include "message.h"
#include "output_format.h"
#include "pins.h"
#include "plan_job.h"
#include "plan_weights.h"
#include "processors.h"
#include "progress.h"

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

static int run(plan_job *self)
{
    int known = plan_find_draft_layers(self);
    if (known != EXIT_DONE) {
        return known;
    }
    eplb_error error;
    eplb_status (*const steps[])(plan_job *, eplb_error *) = {
        plan_read_inputs, plan_make_cluster, open_exact, make_plan, repair, place_weighted};
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
                                  .placement = plan_result(self),
                                  .current = self->current,
                                  .rebalance = self->rebalances ? &self->terms : NULL,
                                  .rebalance_values = self->values,
                                  .expert_bytes = self->values->expert_bytes};
    if (plan_report_create(&report, &subject, &error) != EPLB_OK) {
        return fail(&error);
    }
    int exit_code = plan_deliver(self, &report);
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
