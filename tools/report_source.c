/* SPDX-License-Identifier: MIT */
#include "report_source.h"

#include <stdlib.h>

#include <eplb/source.h>

#include "draft_layers.h"
#include "file_layers.h"
#include "message.h"
#include "report_placement.h"
#include "report_plan.h"

static eplb_status no_memory(eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
}

static eplb_read_options reading_of(const report_source *self, int32_t experts)
{
    return counting_reading(&self->values->counting, self->counted_under, self->from, experts);
}

static eplb_status read_load(report_source *self, eplb_error *error)
{
    const report_values *values = self->values;
    eplb_read_options reading = reading_of(self, values->experts);
    int32_t are_logical = 0;
    eplb_source_load_options whole;
    eplb_source_load_options_init(&whole);
    whole.slices = 1;
    whole.are_logical = &are_logical;
    const char *text = self->input.text;
    eplb_status status =
        eplb_source_load(&self->load, &self->hooks, &text, 1, &reading, &whole, error);
    if (status == EPLB_OK) {
        self->assumes_experts = are_logical == 0 && values->experts == 0 && values->current == NULL;
    } else {
        counting_explain(&values->counting, self->model, values->experts, error);
    }
    return status == EPLB_OK ? name_file_layers(&self->load, &self->file_ids, &values->dense_layers,
                                                draft_layers_of(values->current), self->model,
                                                &self->hooks, error)
                             : status;
}

static eplb_status make_statistics(report_source *self, eplb_error *error)
{
    const report_values *values = self->values;
    int32_t experts = eplb_load_experts(self->load);
    if (values->topk > experts) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "--topk %d: a token cannot go to more than the %d experts",
                              values->topk, experts);
    }
    eplb_step_stats_options options;
    eplb_step_stats_options_init(&options);
    options.topk = values->topk;
    options.tile = values->tile;
    options.capacity_factor = values->capacity_factor;
    self->excesses = calloc((size_t)eplb_load_layers(self->load), sizeof(*self->excesses));
    eplb_status status =
        self->excesses != NULL
            ? eplb_step_stats_create(&self->stats, &self->hooks, self->placement, &options, error)
            : no_memory(error);
    return status == EPLB_OK
               ? eplb_step_stats_create(&self->replanned, &self->hooks,
                                        eplb_plan_placement(self->plan), &options, error)
               : status;
}

/* The tokens that a step of so many assignments can have at most; 0: unknown. */
static double tokens_of(const report_values *values, double assignments)
{
    double by_topk = values->topk > 0 ? assignments / (double)values->topk : 0.0;
    double given = (double)values->tokens;
    return by_topk > 0.0 && (given <= 0.0 || by_topk < given) ? by_topk : given;
}

/* Looks for an expert with more tokens than the step has. Returns whether there are any tokens. */
static bool look_for_excess(report_source *self, int32_t layer, int64_t step, const double *counts)
{
    double sum = 0.0;
    int32_t hottest = 0;
    for (int32_t e = 0; e < eplb_load_experts(self->load); e++) {
        sum += counts[e];
        hottest = counts[e] > counts[hottest] ? e : hottest;
    }
    double tokens = tokens_of(self->values, sum);
    double got = counts[hottest];
    excess *worst = &self->excesses[layer];
    if (tokens > 0.0 && got > tokens * (1.0 + 1e-9)) { /* beyond rounding */
        bool is_worse = worst->steps == 0 || got * worst->tokens > worst->got * tokens;
        int64_t steps = worst->steps + 1;
        *worst = is_worse ? (excess){.step = step,
                                     .expert = hottest,
                                     .layer_id = eplb_load_layer_ids(self->load)[layer],
                                     .got = got,
                                     .tokens = tokens}
                          : *worst;
        worst->steps = steps;
    }
    return sum > 0.0;
}

/* Rows of layers that the load left out are dense. Both lists of ids ascend. */
static eplb_status add_step(report_source *self, const eplb_source_step *step, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    bool has_tokens = false;
    int32_t layer = 0;
    for (int32_t r = 0; r < step->rows && status == EPLB_OK; r++) {
        const double *counts = step->counts + (size_t)r * (size_t)step->experts;
        while (layer < eplb_load_layers(self->load) && self->file_ids[layer] < step->layer_ids[r]) {
            layer++;
        }
        if (layer < eplb_load_layers(self->load) && self->file_ids[layer] == step->layer_ids[r]) {
            status = eplb_step_stats_add(self->stats, step->step, layer, counts, error);
            if (status == EPLB_OK) {
                status = eplb_step_stats_add(self->replanned, step->step, layer, counts, error);
            }
            has_tokens |= look_for_excess(self, layer, step->step, counts);
        }
    }
    self->steps += has_tokens ? 1 : 0;
    return status;
}

/* What the first pass had to say about the files is not to be said again. */
static eplb_status read_steps(report_source *self, eplb_error *error)
{
    eplb_read_options reading = reading_of(self, eplb_load_experts(self->load));
    eplb_hooks quiet = self->hooks;
    quiet.log = NULL;
    eplb_source *source;
    eplb_status status = eplb_source_open(&source, &quiet, self->input.text, &reading, error);
    while (status == EPLB_OK) {
        eplb_source_step step = {.struct_size = sizeof(step)};
        status = eplb_source_next(source, &step, error);
        status = status == EPLB_OK ? add_step(self, &step, error) : status;
    }
    eplb_source_close(&source);
    return status == EPLB_END ? EPLB_OK : status;
}

static eplb_status judge_by_placement(report_source *self, eplb_error *error)
{
    eplb_status status =
        read_report_placement(&self->placement, self->values, self->load, &self->hooks, error);
    if (status == EPLB_OK) {
        status = plan_source(&self->plan, self, eplb_placement_cluster(self->placement), error);
    }
    if (status == EPLB_OK) {
        status = make_statistics(self, error);
    }
    return status == EPLB_OK ? read_steps(self, error) : status;
}

eplb_status report_source_read(report_source *self, const report_values *values,
                               const model_answers *model, const eplb_format *from,
                               const char *text, eplb_error *error)
{
    *self = (report_source){.values = values, .model = model, .from = from, .text = text};
    eplb_hooks_init(&self->hooks);
    self->hooks.log = print_warning;
    eplb_status status = rereadable_open(&self->input, text, error);
    if (status == EPLB_OK) {
        status = counting_open(&self->counted_under, &values->counting, values->experts,
                               &self->hooks, error);
    }
    if (status == EPLB_OK) {
        status = read_load(self, error);
    }
    if (status == EPLB_OK) {
        status = judge_by_placement(self, error);
    }
    if (status != EPLB_OK) {
        rereadable_explain(&self->input, error);
    }
    return status;
}

void report_source_close(report_source *self)
{
    free(self->excesses);
    eplb_step_stats_destroy(&self->stats);
    eplb_step_stats_destroy(&self->replanned);
    eplb_plan_destroy(&self->plan);
    eplb_placement_destroy(&self->placement);
    free(self->file_ids);
    eplb_load_destroy(&self->load);
    eplb_placement_destroy(&self->counted_under);
    rereadable_close(&self->input);
}
