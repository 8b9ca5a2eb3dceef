/* SPDX-License-Identifier: MIT */
/* A report as JSON: one member of "sources" in schema eplb.report/1. */
#include "output.h"
#include "report.h"

static void add_shape(cJSON *object, const report *self)
{
    json_add_text(object, "name", self->name);
    json_add_integer(object, "layers", self->layers);
    json_add_integer(object, "scored_layers", self->scored_layers);
    json_add_integer(object, "experts", self->experts);
    json_add_integer(object, "gpus", self->gpus);
    json_add_integer(object, "slots", self->slots);
    json_add_integer(object, "steps", self->steps);
    const char *current = self->values->current;
    cJSON_AddStringToObject(object, "placement", current != NULL ? "current" : "even_spread");
    if (current != NULL) {
        json_add_text(object, "current", current);
    }
    json_add_number(object, "assignments_per_step", self->scored_layers > 0,
                    self->facts.assignments);
    json_add_number(object, "tokens_per_step", self->facts.tokens > 0.0, self->facts.tokens);
    json_add_number(object, "topk", self->values->topk > 0, (double)self->values->topk);
    json_add_integer(object, "tile", self->values->tile);
    cJSON_AddNumberToObject(object, "capacity_factor", self->values->capacity_factor);
}

static void add_excess(cJSON *object, const excess *worst)
{
    if (worst->steps == 0) {
        cJSON_AddNullToObject(object, "impossible");
        return;
    }
    char text[REPORT_LINE];
    cJSON *impossible = cJSON_AddObjectToObject(object, "impossible");
    json_add_integer(impossible, "steps", worst->steps);
    json_add_integer(impossible, "layer", worst->layer_id);
    json_add_integer(impossible, "step", worst->step);
    json_add_integer(impossible, "expert", worst->expert);
    cJSON_AddNumberToObject(impossible, "got", worst->got);
    cJSON_AddNumberToObject(impossible, "tokens", worst->tokens);
    cJSON_AddStringToObject(impossible, "text", report_excess_words(worst, text, sizeof(text)));
}

static void add_verdict(cJSON *object, const verdict *judged, const char *words)
{
    cJSON *item = cJSON_AddObjectToObject(object, "verdict");
    cJSON_AddStringToObject(item, "code", verdict_name(judged->kind));
    cJSON_AddBoolToObject(item, "certain", judged->certain);
    json_add_number(item, "steps_needed", judged->steps_needed > 0, (double)judged->steps_needed);
    cJSON_AddStringToObject(item, "text", words);
}

static void add_spread(cJSON *object, const report *self, const token_spread *spread)
{
    cJSON *shares = cJSON_AddArrayToObject(object, "hottest_shares");
    for (int i = 0; i < MOST_SHARES; i++) {
        cJSON *share = cJSON_CreateObject();
        int32_t experts = (int32_t)1 << i < self->experts ? (int32_t)1 << i : self->experts;
        json_add_integer(share, "experts", experts);
        cJSON_AddNumberToObject(share, "share", spread->shares[i]);
        cJSON_AddItemToArray(shares, share);
        if (experts == self->experts) {
            break;
        }
    }
    cJSON *classes = cJSON_AddArrayToObject(object, "experts_by_ratio");
    double from = 0.0;
    double below = 0.125; /* as ratio_class has it: the first class is that of no tokens */
    for (int i = 0; i < RATIO_CLASSES; i++) {
        cJSON *class = cJSON_CreateObject();
        cJSON_AddNumberToObject(class, "ratio_from", from);
        json_add_number(class, "ratio_below", i < RATIO_CLASSES - 1, i == 0 ? 0.0 : below);
        cJSON_AddNumberToObject(class, "experts", spread->by_ratio[i]);
        cJSON_AddItemToArray(classes, class);
        from = i == 0 ? 0.0 : below;
        below = i == 0 ? below : 2.0 * below;
    }
}

static void add_spare(cJSON *spares, int32_t slots, double imbalance, double bound, bool exists)
{
    cJSON *spare = cJSON_CreateObject();
    json_add_integer(spare, "slots", slots);
    json_add_number(spare, "imbalance", exists, imbalance);
    json_add_number(spare, "lower_bound", exists, bound);
    cJSON_AddItemToArray(spares, spare);
}

static void add_spares(cJSON *object, const report *self)
{
    bool exists = self->scored_layers > 0;
    cJSON *spares = cJSON_AddArrayToObject(object, "spare_slots");
    for (int32_t i = 0; i < self->spares; i++) {
        const report_spare *own = &self->spare[i];
        cJSON *spare = cJSON_CreateObject();
        json_add_integer(spare, "slots", own->slots);
        json_add_number(spare, "imbalance_mean", exists, own->after.mean);
        json_add_number(spare, "imbalance_worst", exists, own->after.worst);
        json_add_number(spare, "lower_bound_mean", exists, own->bound.mean);
        json_add_number(spare, "lower_bound_worst", exists, own->bound.worst);
        cJSON_AddItemToArray(spares, spare);
    }
}

static void add_engines(cJSON *object, const report *self)
{
    const eplb_step_stats_info *info = &self->engines;
    bool exists = self->scored_layers > 0;
    cJSON *engines = cJSON_AddObjectToObject(object, "engines");
    json_add_number(engines, "sglang_utilisation", exists, info->sglang_utilisation);
    json_add_number(engines, "trtllm_imbalance", exists, info->trtllm_imbalance);
    json_add_number(engines, "vllm_balancedness", info->vllm_balancedness > 0.0,
                    info->vllm_balancedness);
}

static void add_hints(cJSON *object, const report *self)
{
    cJSON *hints = cJSON_AddArrayToObject(object, "hints");
    for (int32_t i = 0; i < self->hints; i++) {
        cJSON *hint = cJSON_CreateObject();
        cJSON_AddStringToObject(hint, "code", report_hint_name(self->hint[i].kind));
        cJSON_AddStringToObject(hint, "text", self->hint[i].text);
        cJSON_AddItemToArray(hints, hint);
    }
}

static void add_wait_row(cJSON *list, const report_wait_row *row)
{
    const eplb_layer_waits *waits = &row->waits;
    cJSON *object = cJSON_CreateObject();
    json_add_integer(object, "layer", waits->layer_id);
    json_add_integer(object, "samples", waits->samples);
    cJSON_AddNumberToObject(object, "p50_us", waits->p50);
    cJSON_AddNumberToObject(object, "p99_us", waits->p99);
    cJSON_AddNumberToObject(object, "mean_us", waits->mean);
    cJSON_AddNumberToObject(object, "worst_us", waits->worst);
    json_add_integer(object, "missing_ranks", waits->missing_ranks);
    json_add_number(object, "longest_rank", waits->worst_rank >= 0, waits->worst_rank);
    json_add_number(object, "longest_rank_p99_us", waits->worst_rank >= 0, waits->worst_rank_p99);
    json_add_number(object, "waited_for_rank", waits->least_rank >= 0, waits->least_rank);
    json_add_number(object, "busiest_gpu", row->busiest_gpu >= 0, row->busiest_gpu);
    if (row->agreement == WAITS_UNKNOWN) {
        cJSON_AddNullToObject(object, "agree");
    } else {
        cJSON_AddBoolToObject(object, "agree", row->agreement == WAITS_AGREE);
    }
    cJSON_AddItemToArray(list, object);
}

static void add_waits(cJSON *object, const report *self)
{
    const report_waits *waits = &self->waits;
    if (waits->layers == 0) {
        cJSON_AddNullToObject(object, "waits");
        return;
    }
    cJSON *item = cJSON_AddObjectToObject(object, "waits");
    json_add_integer(item, "samples", waits->info.samples);
    cJSON_AddNumberToObject(item, "p50_us", waits->info.p50);
    cJSON_AddNumberToObject(item, "p99_us", waits->info.p99);
    json_add_integer(item, "missing_ranks", waits->info.missing_ranks);
    json_add_integer(item, "agreeing_layers", waits->agreeing);
    json_add_integer(item, "disagreeing_layers", waits->disagreeing);
    cJSON *list = cJSON_AddArrayToObject(item, "per_layer");
    for (int32_t l = 0; l < waits->layers; l++) {
        add_wait_row(list, &waits->rows[l]);
    }
}

static void add_steps(cJSON *object, const report_row *row)
{
    const eplb_layer_stats *stats = &row->stats;
    bool exists = stats->steps > 0;
    json_add_integer(object, "steps", stats->steps);
    json_add_integer(object, "zero_steps", stats->skipped);
    json_add_number(object, "assignments_per_step", exists, stats->assignments);
    json_add_number(object, "tokens_per_step", row->facts.tokens > 0.0 && exists,
                    row->facts.tokens);
    json_add_number(object, "imbalance_mean", exists, stats->imbalance_mean);
    json_add_number(object, "imbalance_p50", exists, stats->imbalance_p50);
    json_add_number(object, "imbalance_p99", exists, stats->imbalance_p99);
    json_add_number(object, "imbalance_worst", exists, stats->imbalance_worst);
    json_add_number(object, "idle_share", exists, stats->idle_share);
    json_add_number(object, "idle_others", exists, stats->idle_others);
    json_add_number(object, "experts_touched", exists, stats->experts_touched);
    json_add_number(object, "padded_worst_rank", exists, stats->padded_worst_rank);
    json_add_number(object, "padded_ratio", exists, stats->padded_ratio);
    json_add_number(object, "dropped", exists, stats->dropped);
    json_add_number(object, "sglang_utilisation", exists, stats->sglang_utilisation);
    json_add_number(object, "trtllm_imbalance", exists, stats->trtllm_imbalance);
}

static void add_split(cJSON *object, const report_row *row)
{
    const eplb_split *split = &row->split;
    bool exists = split->steps > 0;
    bool few = split->too_short != 0;
    json_add_number(object, "persistent", exists, split->persistent);
    json_add_number(object, "standard_error", exists, row->verdict.error);
    cJSON_AddBoolToObject(object, "standard_error_by_chance_only", few);
    json_add_number(object, "noise", exists && !few, split->noise);
    json_add_number(object, "uncorrected", exists, split->uncorrected);
    json_add_number(object, "dispersion", split->dispersion > 0.0, split->dispersion);
    json_add_number(object, "drift", split->drift > 0.0, split->drift);
    json_add_number(object, "busiest_gpu", exists, split->busiest_gpu);
    json_add_number(object, "imbalance_replanned", exists, row->facts.planned);
    json_add_number(object, "seen_replanned", exists, row->facts.seen_replanned);
    json_add_number(object, "lower_bound", exists, row->bound);
}

static void add_hottest(cJSON *object, const eplb_layer_stats *stats)
{
    cJSON *list = cJSON_AddArrayToObject(object, "hottest");
    for (int i = 0; i < EPLB_HOTTEST_EXPERTS && stats->hottest_experts[i] >= 0; i++) {
        cJSON *expert = cJSON_CreateObject();
        json_add_integer(expert, "expert", stats->hottest_experts[i]);
        cJSON_AddNumberToObject(expert, "ratio", stats->hottest_ratios[i]);
        cJSON_AddItemToArray(list, expert);
    }
}

static void add_row(cJSON *list, const report *self, const report_row *row)
{
    cJSON *object = cJSON_CreateObject();
    json_add_integer(object, "layer", row->layer_id);
    add_steps(object, row);
    add_split(object, row);
    add_hottest(object, &row->stats);
    add_excess(object, &row->excess);
    cJSON *spares = cJSON_AddArrayToObject(object, "spare_slots");
    for (int32_t i = 0; i < row->facts.spares; i++) {
        const spare_slots *spare = &row->facts.spare[i];
        add_spare(spares, spare->slots, spare->imbalance, spare->bound, row->split.steps > 0);
    }
    add_spread(object, self, &row->spread);
    add_verdict(object, &row->verdict, row->words);
    cJSON_AddItemToArray(list, object);
}

static void add_results(cJSON *object, const report *self)
{
    add_excess(object, &self->excess);
    json_add_summary(object, "imbalance", self->scored_layers > 0, &self->seen);
    json_add_summary(object, "persistent", self->scored_layers > 0, &self->persistent);
    json_add_number(object, "noise", self->scored_layers > 0 && !self->facts.too_few_steps,
                    self->facts.seen - self->facts.persistent);
    json_add_summary(object, "imbalance_replanned", self->scored_layers > 0, &self->planned);
    json_add_summary(object, "seen_replanned", self->scored_layers > 0, &self->seen_replanned);
    json_add_summary(object, "lower_bound", self->scored_layers > 0, &self->bound);
    json_add_summary(object, "padded_worst_rank", self->scored_layers > 0, &self->padded);
    add_spares(object, self);
    add_engines(object, self);
    add_spread(object, self, &self->spread);
    add_verdict(object, &self->verdict, self->words);
    add_hints(object, self);
    json_add_text(object, "next_step", self->next_step);
    add_waits(object, self);
}

void report_add_json(const report *self, cJSON *sources)
{
    cJSON *object = cJSON_CreateObject();
    add_shape(object, self);
    add_results(object, self);
    cJSON *list = cJSON_AddArrayToObject(object, "per_layer");
    for (int32_t l = 0; l < self->layers; l++) {
        add_row(list, self, &self->rows[l]);
    }
    cJSON_AddItemToArray(sources, object);
}
