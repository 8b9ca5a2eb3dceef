/* SPDX-License-Identifier: MIT */
/* A plan as one JSON document, schema eplb.plan/1. */
#include "output.h"
#include "plan_report.h"

static void add_copies(cJSON *object, const plan_report *self, int64_t copies)
{
    json_add_known_integer(object, "copies", self->has_current, copies);
}

/* From the GPU with the fewest to that with the most. */
static void add_range(cJSON *document, const char *name, bool exists, int64_t fewest, int64_t most)
{
    if (!exists) {
        cJSON_AddNullToObject(document, name);
        return;
    }
    cJSON *object = cJSON_AddObjectToObject(document, name);
    json_add_integer(object, "min", fewest);
    json_add_integer(object, "max", most);
}

static void add_shape(cJSON *document, const plan_report *self)
{
    json_add_integer(document, "layers", self->layers);
    json_add_integer(document, "draft_layers", self->draft_layers);
    json_add_integer(document, "experts", self->experts);
    json_add_integer(document, "gpus", self->gpus);
    json_add_integer(document, "live_gpus", self->live_gpus);
    bool alike = self->least_slots == self->slots;
    json_add_known_integer(document, "slots", alike, self->slots);
    json_add_known_integer(document, "redundant", alike, self->slots - self->experts);
    add_range(document, "slots_per_gpu", true, self->fewest_slots, self->most_slots);
    bool has_bytes = self->expert_bytes > 0;
    json_add_known_integer(document, "expert_bytes", has_bytes, self->expert_bytes);
    add_range(document, "weight_bytes_per_gpu", has_bytes, self->fewest_bytes, self->most_bytes);
    cJSON_AddStringToObject(document, "objective", eplb_objective_name(self->objective));
    json_add_integer(document, "scenarios", self->scenarios);
    cJSON_AddStringToObject(document, "algorithm", self->algorithm);
}

/* How the layers share the memory; null where they are alike unasked. */
static void add_budget(cJSON *document, const plan_report *self)
{
    const eplb_layer_budget_info *info = &self->budget.info;
    if (!self->budget.exists) {
        cJSON_AddNullToObject(document, "layer_budget");
        return;
    }
    cJSON *object = cJSON_AddObjectToObject(document, "layer_budget");
    json_add_integer(object, "budget_slots", info->budget);
    json_add_integer(object, "used_slots", info->used);
    add_range(object, "slots_per_layer", true, info->fewest_slots, info->most_slots);
    json_add_known_integer(object, "uniform_slots", info->has_uniform != 0, info->uniform_slots);
    json_add_number(object, "sum_uniform", info->has_uniform != 0, info->sum_uniform);
    cJSON_AddNumberToObject(object, "sum", info->sum);
    cJSON_AddBoolToObject(object, "uniform", info->is_uniform != 0);
}

static void add_results(cJSON *document, const plan_report *self)
{
    json_add_summary(document, "imbalance_even_spread", self->scored_layers > 0, &self->spread);
    if (self->has_current) {
        json_add_summary(document, "imbalance_before", self->scored_layers > 0, &self->before);
    } else {
        cJSON_AddNullToObject(document, "imbalance_before");
    }
    json_add_summary(document, "imbalance_after", self->scored_layers > 0, &self->after);
    if (self->gains_by_weights) {
        json_add_summary(document, "imbalance_with_weights", true, &self->weighted);
    } else {
        cJSON_AddNullToObject(document, "imbalance_with_weights");
    }
    json_add_summary(document, "lower_bound", self->scored_layers > 0, &self->bound);
    add_copies(document, self, self->copies);
    json_add_known_integer(document, "bytes_to_copy", self->has_current && self->expert_bytes > 0,
                           self->bytes_to_copy);
    plan_rebalance_add_json(document, self);
    cJSON_AddStringToObject(document, "stopped_by", eplb_stop_name(self->stop));
    cJSON_AddBoolToObject(document, "valid", self->valid);
    json_add_integer(document, "repaired_slots", self->repaired_slots);
    cJSON_AddBoolToObject(document, "proposes_changes", self->proposes_changes);
}

static void add_layers(cJSON *document, const plan_report *self)
{
    cJSON *list = cJSON_AddArrayToObject(document, "per_layer");
    for (int32_t l = 0; l < self->layers; l++) {
        const plan_row *row = &self->rows[l];
        cJSON *object = cJSON_CreateObject();
        json_add_integer(object, "layer", row->layer_id);
        json_add_integer(object, "slots", row->slots);
        json_add_number(object, "imbalance_before", row->scored && self->has_current, row->before);
        json_add_number(object, "imbalance_after", row->scored, row->after);
        if (self->budget.exists) {
            json_add_number(object, "imbalance_uniform",
                            row->scored && self->budget.info.has_uniform != 0, row->uniform);
        }
        json_add_number(object, "lower_bound", row->scored, row->bound);
        add_copies(object, self, row->copies);
        plan_fewest_add_layer_json(object, self, row);
        cJSON_AddItemToArray(list, object);
    }
}

static void add_scenarios(cJSON *document, const plan_report *self)
{
    cJSON *list = cJSON_AddArrayToObject(document, "per_scenario");
    for (int32_t k = 0; k < self->scenarios; k++) {
        const plan_scenario *s = &self->scenario[k];
        bool has_before = s->layers > 0 && self->has_current;
        cJSON *object = cJSON_CreateObject();
        json_add_text(object, "name", s->name);
        cJSON_AddNumberToObject(object, "weight", s->weight);
        json_add_number(object, "imbalance_before_mean", has_before, s->before.mean);
        json_add_number(object, "imbalance_before_worst", has_before, s->before.worst);
        json_add_number(object, "imbalance_after_mean", s->layers > 0, s->after.mean);
        json_add_number(object, "imbalance_after_worst", s->layers > 0, s->after.worst);
        cJSON_AddItemToArray(list, object);
    }
}

static void add_choices(cJSON *document, const plan_report *self)
{
    bool has_choices = self->nodes.has_node_cost;
    json_add_number(document, "node_cost", has_choices, self->nodes.node_cost);
    if (!has_choices) {
        return;
    }
    cJSON *list = cJSON_AddArrayToObject(document, "node_choices");
    for (int32_t i = 0; i < EPLB_NODE_CHOICES; i++) {
        const eplb_node_choice *choice = &self->nodes.choices[i];
        cJSON *object = cJSON_CreateObject();
        cJSON_AddBoolToObject(object, "exchanges", choice->exchanges != 0);
        cJSON_AddNumberToObject(object, "tolerance", choice->tolerance);
        json_add_number(object, "imbalance_mean", self->scored_layers > 0, choice->imbalance_mean);
        json_add_number(object, "imbalance_worst", self->scored_layers > 0,
                        choice->imbalance_worst);
        json_add_number(object, "cross_node", self->scored_layers > 0, choice->cross_node);
        cJSON_AddItemToArray(list, object);
    }
}

static void add_nodes(cJSON *document, const plan_report *self)
{
    const plan_nodes *nodes = &self->nodes;
    bool has_traffic = nodes->nodes > 1 && self->scored_layers > 0;
    json_add_integer(document, "nodes", nodes->nodes);
    cJSON_AddStringToObject(document, "hierarchy", nodes->groups > 1 ? "groups" : "none");
    json_add_integer(document, "groups", nodes->groups);
    if (nodes->groups > 1) {
        json_add_summary(document, "imbalance_without_hierarchy", self->scored_layers > 0,
                         &nodes->without_groups);
    } else {
        cJSON_AddNullToObject(document, "imbalance_without_hierarchy");
    }
    json_add_number(document, "cross_node_before", has_traffic && self->has_current,
                    nodes->cross_node_before);
    json_add_number(document, "cross_node_after", has_traffic, nodes->cross_node_after);
    add_choices(document, self);
}

static void add_losses(cJSON *document, const plan_report *self)
{
    cJSON *list = cJSON_AddArrayToObject(document, "lost_experts");
    for (int32_t i = 0; i < self->losses; i++) {
        cJSON *object = cJSON_CreateObject();
        json_add_integer(object, "layer", self->loss[i].layer_id);
        cJSON *experts = cJSON_AddArrayToObject(object, "experts");
        for (int32_t e = 0; e < self->loss[i].count; e++) {
            cJSON_AddItemToArray(experts, cJSON_CreateNumber(self->loss[i].experts[e]));
        }
        cJSON_AddItemToArray(list, object);
    }
    json_add_integer(document, "lost_by_single_failure", self->fragile);
}

static void add_refinement(cJSON *document, const plan_report *self)
{
    const plan_refinement *refinement = &self->refinement;
    if (!refinement->asked) {
        cJSON_AddNullToObject(document, "ilp");
        return;
    }
    bool scored = self->scored_layers > 0;
    cJSON *object = cJSON_AddObjectToObject(document, "ilp");
    json_add_number(object, "imbalance_without_mean", scored, refinement->searched);
    json_add_number(object, "lower_bound_without_mean", scored, refinement->bound_searched);
    json_add_integer(object, "optimal_layers", refinement->optimal_layers);
    json_add_integer(object, "nodes", refinement->nodes);
    plan_fewest_add_json(object, self);
}

int plan_report_print_json(const plan_report *self, int exit_code)
{
    cJSON *document = json_begin("eplb.plan/1");
    add_shape(document, self);
    add_results(document, self);
    if (self->out != NULL) {
        json_add_text(document, "out", self->out);
        cJSON_AddStringToObject(document, "format", eplb_format_name(self->format));
    }
    add_refinement(document, self);
    add_nodes(document, self);
    add_budget(document, self);
    add_scenarios(document, self);
    add_losses(document, self);
    add_layers(document, self);
    return json_finish(document, exit_code);
}
