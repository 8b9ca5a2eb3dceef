/* SPDX-License-Identifier: MIT */
/* From layers to the model: means, and one verdict. */
#include <inttypes.h>
#include <stdlib.h>

#include "line.h"
#include "message.h"
#include "report.h"

static void add_facts(layer_facts *sum, const layer_facts *facts)
{
    sum->steps = facts->steps > sum->steps ? facts->steps : sum->steps;
    sum->too_few_steps &= facts->too_few_steps;
    sum->assignments += facts->assignments;
    sum->tokens += facts->tokens;
    sum->padded_ratio += facts->padded_ratio;
    sum->standard_error += facts->standard_error;
}

static void add_spread(token_spread *sum, const token_spread *spread)
{
    for (int i = 0; i < MOST_SHARES; i++) {
        sum->shares[i] += spread->shares[i];
    }
    for (int i = 0; i < RATIO_CLASSES; i++) {
        sum->by_ratio[i] += spread->by_ratio[i];
    }
}

static void add_excess(excess *sum, const excess *layer)
{
    bool is_worse = layer->steps > 0 &&
                    (sum->steps == 0 || layer->got * sum->tokens > sum->got * layer->tokens);
    int64_t steps = sum->steps + layer->steps;
    *sum = is_worse ? *layer : *sum;
    sum->steps = steps;
}

static void add_row(report *self, const report_row *row)
{
    summary_add(&self->seen, row->facts.seen);
    summary_add(&self->persistent, row->facts.persistent);
    summary_add(&self->planned, row->facts.planned);
    summary_add(&self->seen_replanned, row->facts.seen_replanned);
    summary_add(&self->bound, row->bound);
    summary_add(&self->padded, row->facts.padded);
    for (int32_t i = 0; i < self->spares; i++) {
        summary_add(&self->spare[i].after, row->facts.spare[i].imbalance);
        summary_add(&self->spare[i].bound, row->facts.spare[i].bound);
    }
    add_facts(&self->facts, &row->facts);
    add_spread(&self->spread, &row->spread);
    add_excess(&self->excess, &row->excess);
}

/* Turns sums over the scored layers into means. */
static void divide(report *self)
{
    double layers = (double)self->scored_layers;
    summary *summaries[] = {&self->seen,  &self->persistent, &self->planned,
                            &self->bound, &self->padded,     &self->seen_replanned};
    for (size_t i = 0; i < sizeof(summaries) / sizeof(summaries[0]); i++) {
        summary_finish(summaries[i], self->scored_layers);
    }
    for (int32_t i = 0; i < self->spares; i++) {
        summary_finish(&self->spare[i].after, self->scored_layers);
        summary_finish(&self->spare[i].bound, self->scored_layers);
    }
    for (int i = 0; i < MOST_SHARES; i++) {
        self->spread.shares[i] /= layers;
    }
    for (int i = 0; i < RATIO_CLASSES; i++) {
        self->spread.by_ratio[i] /= layers;
    }
    self->facts.assignments /= layers;
    self->facts.tokens /= layers;
    self->facts.padded_ratio /= layers;
    self->facts.standard_error /= layers;
}

/* The means as if they were one layer's. */
static void complete_facts(report *self)
{
    layer_facts *facts = &self->facts;
    facts->gpus = self->gpus;
    facts->seen = self->seen.mean;
    facts->persistent = self->persistent.mean;
    facts->planned = self->planned.mean;
    facts->seen_replanned = self->seen_replanned.mean;
    facts->padded = self->padded.mean;
    facts->hottest_expert = -1;
    facts->spares = self->spares;
    for (int32_t i = 0; i < self->spares; i++) {
        facts->spare[i] = (spare_slots){.slots = self->spare[i].slots,
                                        .imbalance = self->spare[i].after.mean,
                                        .bound = self->spare[i].bound.mean};
    }
}

static void judge_rows(report *self)
{
    for (int32_t l = 0; l < self->layers; l++) {
        report_row *row = &self->rows[l];
        row->verdict = judge(&row->facts);
        verdict_words(&row->facts, &row->verdict, row->words, sizeof(row->words));
        self->verdicts[row->verdict.kind]++;
    }
}

/* The kind of verdict that has most to take away over the layers. Layers as they are on average
 * that are fine or padded beyond hope make the model so: a step waits for the sum of its layers.
 * Where nothing is to be taken away, what is left is padding. */
static verdict_kind choose_kind(const report *self)
{
    if (self->scored_layers == 0) {
        return VERDICT_NO_LOAD;
    }
    if (is_fine(&self->facts)) {
        return VERDICT_FINE;
    }
    if (is_hopelessly_padded(&self->facts)) {
        return VERDICT_MORE_TOKENS;
    }
    double gains[VERDICT_KINDS] = {0};
    for (int32_t l = 0; l < self->layers; l++) {
        const report_row *row = &self->rows[l];
        gains[row->verdict.kind] += verdict_gain(&row->facts, &row->verdict);
    }
    int best = VERDICT_MORE_TOKENS;
    for (int kind = VERDICT_MORE_TOKENS; kind < VERDICT_KINDS; kind++) {
        best = gains[kind] > gains[best] ? kind : best;
    }
    return (verdict_kind)best;
}

/* The model's verdict as that of the layers that have this kind: as sure as the surest, with the
 * spare slots and steps that the neediest asks for. */
static verdict gather_verdict(const report *self, verdict_kind kind)
{
    verdict result = {.kind = kind, .is_sum = true, .spare = -1};
    result.certain = self->verdicts[kind] == 0;
    for (int32_t l = 0; l < self->layers; l++) {
        const verdict *own = &self->rows[l].verdict;
        if (own->kind == kind) {
            result.certain |= own->certain;
            result.spare = own->spare > result.spare ? own->spare : result.spare;
            result.steps_needed =
                own->steps_needed > result.steps_needed ? own->steps_needed : result.steps_needed;
        }
        if (own->kind != VERDICT_NO_LOAD) {
            result.is_sum &= own->is_sum;
            result.error += own->error / (double)self->scored_layers;
        }
    }
    return result;
}

static void count_kinds(const report *self, line *words)
{
    const char *before = "; layers: ";
    for (int kind = 0; kind < VERDICT_KINDS; kind++) {
        if (self->verdicts[kind] > 0) {
            line_add(words, "%s%" PRId32 " %s", before, self->verdicts[kind],
                     verdict_name((verdict_kind)kind));
            before = ", ";
        }
    }
}

static void say_model(report *self)
{
    char text[REPORT_LINE];
    verdict_words(&self->facts, &self->verdict, text, sizeof(text));
    line words = line_begin(self->words, sizeof(self->words));
    line_add(&words, "on average over %" PRId32 " layer%s: %s", self->scored_layers,
             plural(self->scored_layers), text);
    count_kinds(self, &words);
}

void report_conclude(report *self)
{
    judge_rows(self);
    self->facts.too_few_steps = self->scored_layers > 0; /* until a layer has enough */
    for (int32_t l = 0; l < self->layers; l++) {
        if (self->rows[l].facts.steps > 0) {
            add_row(self, &self->rows[l]);
        }
    }
    if (self->scored_layers > 0) {
        divide(self);
    }
    if (self->scored_layers == 1) { /* its own words say more than means of one */
        self->facts = self->worst[0]->facts;
        self->verdict = self->worst[0]->verdict;
        verdict_words(&self->facts, &self->verdict, self->words, sizeof(self->words));
        return;
    }
    complete_facts(self);
    self->verdict = gather_verdict(self, choose_kind(self));
    if (self->scored_layers > 0) {
        say_model(self);
    } else {
        verdict_words(&self->facts, &self->verdict, self->words, sizeof(self->words));
    }
}

eplb_status report_fill(report *self, const report_source *source, eplb_error *error)
{
    const eplb_cluster *cluster = eplb_placement_cluster(source->placement);
    *self = (report){
        .values = source->values,
        .name = eplb_load_scenario_name(source->load, 0),
        .layers = eplb_load_layers(source->load),
        .experts = eplb_load_experts(source->load),
        .gpus = eplb_cluster_live_gpus(cluster),
        .slots = eplb_cluster_live_slots(cluster),
        .steps = source->steps,
    };
    eplb_status status = report_measure(self, source, error);
    if (status == EPLB_OK) {
        status = report_plan(self, source, error);
    }
    if (status == EPLB_OK) {
        status = report_compare_waits(self, error);
    }
    if (status == EPLB_OK) {
        report_conclude(self);
        report_give_hints(self);
        report_say_next_step(self, source->text);
    }
    return status;
}

void report_release(report *self)
{
    free(self->rows);
    free(self->worst);
    free(self->waits.rows);
}
