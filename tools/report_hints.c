/* SPDX-License-Identifier: MIT */
/* Lines beside the verdict: what an operator should know before acting on it. */
#include <inttypes.h>
#include <math.h>

#include "line.h"
#include "message.h"
#include "report.h"

/* Nearly all experts are read, each for so few tokens that reading its weights is most of the
 * work: every GPU reads the whole model, as in tensor parallelism, and waits for the busiest. */
#define TOUCHED 0.9
#define FEW_TOKENS 8.0

/* Variance of the window's loads over that of its steps: see eplb_split. */
#define WANDERING 4.0

/* Variance between steps over that of independent tokens: see eplb_split. Tokens of one prompt like
 * the same experts and make it some ten. */
#define DIFFERENT_STEPS 16.0

const char *report_hint_name(report_hint_kind kind)
{
    static const char *const names[MOST_HINTS] = {
        "tokens_disagree", "weight_reuse", "tensor_parallelism", "smaller_group",
        "loads_wander",    "steps_differ", "waits_disagree",
    };
    return names[kind];
}

bool report_has_hint(const report *self, report_hint_kind kind)
{
    for (int32_t i = 0; i < self->hints; i++) {
        if (self->hint[i].kind == kind) {
            return true;
        }
    }
    return false;
}

static line begin_hint(report *self, report_hint_kind kind)
{
    report_hint *hint = &self->hint[self->hints++];
    hint->kind = kind;
    return line_begin(hint->text, sizeof(hint->text));
}

static void hint_at_tokens(report *self)
{
    const report_values *values = self->values;
    if (values->topk == 0 || values->tokens == 0) {
        return;
    }
    double tokens = self->facts.assignments / (double)values->topk;
    if (fabs(tokens - (double)values->tokens) > 0.01 * (double)values->tokens) {
        line text = begin_hint(self, HINT_TOKENS_DISAGREE);
        line_add(&text,
                 "--topk %" PRId32 " makes %.0f tokens of the mean step's %.0f assignments, but "
                 "--tokens says %" PRId32,
                 values->topk, tokens, self->facts.assignments, values->tokens);
    }
}

/* Below E / k tokens a step has fewer assignments than experts. */
static void hint_at_weight_reuse(report *self)
{
    if (self->facts.assignments < (double)self->experts) {
        line text = begin_hint(self, HINT_WEIGHT_REUSE);
        line_add(&text, "a step has ");
        line_add_count(&text, self->facts.assignments, "assignment");
        line_add(&text,
                 " for %" PRId32
                 " experts: below that (experts / top-k tokens a step) the weights that are read "
                 "serve about one token each, and reuse does not pay",
                 self->experts);
    }
}

static double mean_touched(const report *self)
{
    double sum = 0.0;
    for (int32_t l = 0; l < self->layers; l++) {
        sum += self->rows[l].stats.experts_touched;
    }
    return sum / (double)self->scored_layers;
}

static void hint_at_tensor_parallelism(report *self)
{
    double touched = mean_touched(self);
    double tokens = self->facts.assignments / (double)self->experts;
    if (touched >= TOUCHED && tokens <= FEW_TOKENS) {
        line text = begin_hint(self, HINT_TENSOR_PARALLELISM);
        line_add(&text,
                 "%.0f %% of the experts get tokens in a step, %.1f each on average: with nearly "
                 "all experts touched by few tokens, tensor parallelism may serve better than "
                 "expert parallelism",
                 100.0 * touched, tokens);
    }
}

static void hint_at_smaller_group(report *self)
{
    if (self->verdict.kind == VERDICT_MORE_TOKENS && self->gpus > 1) {
        line text = begin_hint(self, HINT_SMALLER_GROUP);
        line_add(&text, "if the traffic does not fill a step, shrink the EP group before the "
                        "batch: the same tokens on fewer GPUs pad less and vary less");
    }
}

static void hint_at_wandering(report *self)
{
    const report_row *most = &self->rows[0];
    for (int32_t l = 1; l < self->layers; l++) {
        most = self->rows[l].split.drift > most->split.drift ? &self->rows[l] : most;
    }
    if (most->split.drift >= WANDERING) {
        line text = begin_hint(self, HINT_LOADS_WANDER);
        line_add(&text,
                 "loads wander through the window (layer %" PRId32
                 ": %.0f times the variance of independent steps): some of the noise may be what "
                 "a plan for each part of it would follow",
                 most->layer_id, most->split.drift);
    }
}

/* Two kinds of traffic in turns, step by step: the sum has none of it. */
static void hint_at_different_steps(report *self)
{
    const report_row *most = &self->rows[0];
    for (int32_t l = 1; l < self->layers; l++) {
        most = self->rows[l].split.dispersion > most->split.dispersion ? &self->rows[l] : most;
    }
    bool is_noise = self->verdict.kind == VERDICT_MORE_TOKENS && !is_padding(&self->facts);
    if (is_noise && most->split.dispersion >= DIFFERENT_STEPS &&
        !report_has_hint(self, HINT_LOADS_WANDER)) {
        line text = begin_hint(self, HINT_STEPS_DIFFER);
        line_add(
            &text,
            "steps differ more than chance makes them (layer %" PRId32 ": %.0f times the "
            "variance of independent tokens): only tokens of other kinds even that out; or log "
            "each kind of step by itself and give eplb plan a --load for each",
            most->layer_id, most->split.dispersion);
    }
}

static void hint_at_waits(report *self)
{
    const report_waits *waits = &self->waits;
    if (waits->disagreeing == 0) {
        return;
    }
    const report_wait_row *row = waits->rows;
    while (row->agreement != WAITS_DISAGREE) {
        row++;
    }
    int32_t judged = waits->disagreeing + waits->agreeing;
    line text = begin_hint(self, HINT_WAITS_DISAGREE);
    line_add(&text,
             "in %" PRId32 " of %" PRId32 " layer%s the others do not wait for the busiest GPU "
             "(layer %" PRId32 ": for rank %" PRId32 ", where GPU %" PRId32
             " has most tokens): there it is not the load",
             waits->disagreeing, judged, plural(judged), row->waits.layer_id, row->waits.least_rank,
             row->busiest_gpu);
}

void report_give_hints(report *self)
{
    if (self->scored_layers > 0) {
        hint_at_tokens(self);
        hint_at_weight_reuse(self);
        hint_at_tensor_parallelism(self);
        hint_at_smaller_group(self);
        hint_at_wandering(self);
        hint_at_different_steps(self);
    }
    hint_at_waits(self);
}

char *report_excess_words(const excess *worst, char *text, size_t size)
{
    line words = line_begin(text, size);
    line_add(&words,
             "layer %" PRId32 ", step %" PRId64 ": expert %" PRId32
             " got %.6g of %.6g tokens: no expert can get more than one from each token; "
             "--topk/--tokens is wrong or these are not per-step counts",
             worst->layer_id, worst->step, worst->expert, worst->got, worst->tokens);
    return text;
}
