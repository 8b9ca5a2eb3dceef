/* SPDX-License-Identifier: MIT */
/* What exact optimisation proves of the number of copies to a target. */
#include <inttypes.h>

#include "message.h"
#include "output.h"
#include "plan_report.h"

#define SHOWN_LAYERS 8

eplb_status plan_fewest_measure(plan_report *self, const plan_subject *subject, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t l = 0; l < self->layers && status == EPLB_OK; l++) {
        eplb_rebalance_layer layer = {.struct_size = sizeof(layer)};
        status = eplb_plan_get_rebalance_layer(subject->plan, l, &layer, error);
        self->rows[l].verdict = layer.verdict;
        self->rows[l].copies_at_least = layer.copies_at_least;
    }
    return status;
}

static bool is_missed(const plan_row *row)
{
    return row->verdict == EPLB_FEWEST_IMPOSSIBLE || row->verdict == EPLB_FEWEST_NOT_REACHED;
}

static void print_missed_layer(const plan_row *row, FILE *out)
{
    fprintf(out, "  layer %" PRId32 ": ", row->layer_id);
    if (row->verdict == EPLB_FEWEST_NOT_REACHED) {
        fprintf(out, "not reached, best found %.4f\n", row->after);
    } else if (row->after <= row->bound * (1.0 + 1e-9)) {
        fprintf(out, "impossible, %.4f is the best there is\n", row->after);
    } else {
        fprintf(out, "impossible, none is below %.4f; best found %.4f\n", row->bound, row->after);
    }
}

static void print_missed_layers(const plan_report *self, FILE *out)
{
    int32_t missed = 0;
    for (int32_t l = 0; l < self->layers; l++) {
        if (is_missed(&self->rows[l]) && missed++ < SHOWN_LAYERS) {
            print_missed_layer(&self->rows[l], out);
        }
    }
    if (missed > SHOWN_LAYERS) {
        fprintf(out, "  and %" PRId32 " more layer%s (--json lists them)\n", missed - SHOWN_LAYERS,
                plural(missed - SHOWN_LAYERS));
    }
}

void plan_fewest_print(const plan_report *self, FILE *out)
{
    const plan_rebalance *rebalance = &self->rebalance;
    if (!rebalance->looks_for_fewest || self->scored_layers == 0) {
        return;
    }
    print_missed_layers(self, out);
    fprintf(out, "Exact search for the fewest copies: proven in %" PRId32 " of %" PRId32 " layer%s",
            rebalance->info.layers_proven, self->scored_layers, plural(self->scored_layers));
    if (rebalance->info.copies_searched != self->copies) {
        fprintf(out, "; %" PRId64 " in all without it", rebalance->info.copies_searched);
    }
    fputs(".\n", out);
}

void plan_fewest_add_json(cJSON *object, const plan_report *self)
{
    const plan_rebalance *rebalance = &self->rebalance;
    if (rebalance->looks_for_fewest) {
        json_add_integer(object, "copies_without", rebalance->info.copies_searched);
        json_add_integer(object, "proven_fewest_layers", rebalance->info.layers_proven);
        json_add_integer(object, "impossible_layers", rebalance->info.layers_impossible);
    }
}

void plan_fewest_add_layer_json(cJSON *object, const plan_report *self, const plan_row *row)
{
    if (!self->rebalance.looks_for_fewest) {
        return;
    }
    if (row->verdict < 0) {
        cJSON_AddNullToObject(object, "fewest");
    } else {
        cJSON_AddStringToObject(object, "fewest",
                                eplb_fewest_verdict_name((eplb_fewest_verdict)row->verdict));
    }
    bool is_known = row->verdict >= 0 && row->verdict != EPLB_FEWEST_IMPOSSIBLE;
    json_add_known_integer(object, "copies_at_least", is_known, row->copies_at_least);
}
