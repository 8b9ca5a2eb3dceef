/* SPDX-License-Identifier: MIT */
#include <stdbool.h>

#include "current.h"
#include "dense_layers.h"
#include "draft_layers.h"
#include "formats.h"
#include "load_reading.h"
#include "message.h"
#include "plan_job.h"

/* A contradiction is found before logs are read, which may take long. */
int plan_find_draft_layers(plan_job *self)
{
    const plan_values *values = self->values;
    int32_t said = draft_layers_of(values->current);
    bool is_given = values->draft_layers != NOT_GIVEN;
    self->draft_layers = is_given ? values->draft_layers : said;
    if (is_given && said >= 0 && said != values->draft_layers) {
        return usage_error(plan_command.name, "--draft-layers %d, but %s has %d",
                           values->draft_layers, values->current, said);
    }
    int32_t most = eplb_format_draft_layers(self->to);
    return values->out != NULL && self->draft_layers > most
               ? usage_error(plan_command.name,
                             "%s can mark at most %d layers as the draft model's, but %s says %d",
                             eplb_format_name(self->to), most,
                             is_given ? "--draft-layers" : values->current, self->draft_layers)
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

static eplb_status check_layers(plan_job *self, eplb_error *error)
{
    return self->values->out != NULL && needs_every_layer(self->to)
               ? check_every_layer(self->load, &self->values->dense_layers, "the loads have",
                                   self->to, error)
               : EPLB_OK;
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

eplb_status plan_read_inputs(plan_job *self, eplb_error *error)
{
    eplb_status (*const steps[])(plan_job *, eplb_error *) = {read_load, check_layers,
                                                              read_current_of, mark_draft_layers};
    eplb_status status = EPLB_OK;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && status == EPLB_OK; i++) {
        status = steps[i](self, error);
    }
    return status;
}
