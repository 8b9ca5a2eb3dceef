/* SPDX-License-Identifier: MIT */
/* A sweep as one JSON document, schema eplb.sweep/1. */
#include "message.h"
#include "output.h"
#include "sweep.h"

static void add_scenarios(cJSON *object, const plan_report *report)
{
    cJSON *list = cJSON_AddArrayToObject(object, "per_scenario");
    for (int32_t k = 0; k < report->scenarios; k++) {
        const plan_scenario *s = &report->scenario[k];
        cJSON *scenario = cJSON_CreateObject();
        json_add_text(scenario, "name", s->name);
        json_add_number(scenario, "imbalance_mean", s->layers > 0, s->after.mean);
        json_add_number(scenario, "imbalance_worst", s->layers > 0, s->after.worst);
        cJSON_AddItemToArray(list, scenario);
    }
}

static void add_row(cJSON *list, const sweep_row *row)
{
    const plan_report *report = &row->report;
    const plan_scenario *worst = sweep_worst_scenario(row);
    cJSON *object = cJSON_CreateObject();
    json_add_integer(object, "gpus", row->gpus);
    json_add_integer(object, "redundant", row->redundant);
    json_add_integer(object, "redundant_asked", row->fewest_asked);
    json_add_integer(object, "slots", report->slots);
    json_add_integer(object, "slots_per_gpu", row->slots_per_gpu);
    cJSON_AddNumberToObject(object, "imbalance_mean", report->after.mean);
    cJSON_AddNumberToObject(object, "imbalance_worst", report->after.worst);
    json_add_number(object, "imbalance_worst_scenario", worst != NULL,
                    worst != NULL ? worst->after.mean : 0.0);
    cJSON_AddNumberToObject(object, "lower_bound_mean", report->bound.mean);
    json_add_known_integer(object, "weight_bytes_per_gpu", report->expert_bytes > 0,
                           report->most_bytes);
    cJSON_AddBoolToObject(object, "knee", row->is_knee);
    add_scenarios(object, report);
    cJSON_AddItemToArray(list, object);
}

static void add_skips(cJSON *document, const sweep *self)
{
    cJSON *list = cJSON_AddArrayToObject(document, "left_out");
    for (int32_t i = 0; i < self->skip_count; i++) {
        cJSON *object = cJSON_CreateObject();
        json_add_integer(object, "gpus", self->skips[i].gpus);
        json_add_integer(object, "redundant", self->skips[i].redundant);
        cJSON_AddItemToArray(list, object);
    }
}

static void add_answers(cJSON *document, const sweep *self)
{
    cJSON *list = cJSON_AddArrayToObject(document, "answers");
    for (int32_t i = 0; i < self->answer_count; i++) {
        const sweep_answer *answer = &self->answers[i];
        cJSON *object = cJSON_CreateObject();
        json_add_integer(object, "gpus", answer->knee->gpus);
        json_add_integer(object, "redundant", answer->knee->redundant);
        cJSON_AddNumberToObject(object, "imbalance_mean", answer->knee->report.after.mean);
        json_add_number(object, "further_gain", answer->knee != answer->last, answer->further_gain);
        cJSON_AddItemToArray(list, object);
    }
}

int sweep_print_json(const sweep *self)
{
    cJSON *document = json_begin("eplb.sweep/1");
    json_add_integer(document, "layers", self->layers);
    json_add_integer(document, "experts", self->experts);
    json_add_integer(document, "scenarios", self->scenarios);
    cJSON_AddStringToObject(document, "objective",
                            eplb_objective_name((eplb_objective)self->values->objective));
    json_add_integer(document, "effort", self->values->effort);
    json_add_known_integer(document, "expert_bytes", self->values->expert_bytes > 0,
                           self->values->expert_bytes);
    cJSON *rows = cJSON_AddArrayToObject(document, "rows");
    for (int32_t i = 0; i < self->row_count; i++) {
        add_row(rows, &self->rows[i]);
    }
    add_skips(document, self);
    add_answers(document, self);
    return json_finish(document, EXIT_DONE);
}
