/* SPDX-License-Identifier: MIT */
/* A report for people. */
#include <inttypes.h>
#include <math.h>

#include "line.h"
#include "message.h"
#include "report.h"
#include "report_table.h"
#include "wrap.h"

/* Layers that get a sentence of their own; the table has more. */
#define MOST_WORDS 4

#define BAR 40 /* columns */

/* What was counted, and where. */
static void print_source(const report *self, FILE *out)
{
    char text[8 * REPORT_LINE];
    line words = line_begin(text, sizeof(text));
    line_add(&words,
             "%s: %" PRId32 " layer%s of %" PRId32 " expert%s on %" PRId32 " GPU%s (%" PRId32
             " slot%s), %" PRId64 " step%s",
             self->name, self->layers, plural(self->layers), self->experts, plural(self->experts),
             self->gpus, plural(self->gpus), self->slots, plural(self->slots), self->steps,
             plural(self->steps));
    if (self->scored_layers > 0) {
        line_add(&words, " of ");
        line_add_count(&words, self->facts.assignments, "assignment");
    }
    if (self->scored_layers > 0 && self->facts.tokens > 0.0) {
        line_add(&words, " (");
        line_add_count(&words, self->facts.tokens, "token");
        line_add(&words, ")");
    }
    fprintf(out, "%s\n", text);
}

static void print_placement(const report *self, FILE *out)
{
    const char *current = self->values->current;
    char text[8 * REPORT_LINE];
    line words = line_begin(text, sizeof(text));
    line_add(&words, "%s", current != NULL ? current : "experts spread in order, as engines start");
    fprintf(out, "Placement: %s\n", text);
    int32_t silent = self->layers - self->scored_layers;
    if (silent > 0) {
        fprintf(out, "%" PRId32 " layer%s without any token %s left out.\n", silent, plural(silent),
                silent == 1 ? "is" : "are");
    }
}

/* A line that begins with a few words and may be long. */
static void print_long(FILE *out, const char *before, const char *text)
{
    int column = fprintf(out, "%s", before);
    write_wrapped(out, text, column, 2);
}

static void print_warning_of_excess(const report *self, FILE *out)
{
    if (self->excess.steps > 0) {
        char text[REPORT_LINE];
        print_long(out, "Warning: ", report_excess_words(&self->excess, text, sizeof(text)));
    }
}

static void print_summary(FILE *out, const char *name, const summary *values, const char *remark)
{
    fprintf(out, "%-18s %8.2f %8.2f   %s\n", name, values->mean, values->worst, remark);
}

/* What the table has no column for, or means of it. */
static void print_summaries(const report *self, FILE *out)
{
    if (self->scored_layers == 1) {
        fprintf(out,
                "\nAfter replanning in the same slots: %.2f (bound %.2f); these steps would "
                "show %.2f.\n",
                self->planned.mean, self->bound.mean, self->seen_replanned.mean);
        return;
    }
    fprintf(out, "\n%-18s %8s %8s\n", "Over the layers", "mean", "worst");
    print_summary(out, "seen", &self->seen, "imbalance of steps");
    print_summary(out, "persistent", &self->persistent, "what lasts: a placement may mend it");
    print_summary(out, "after replanning", &self->planned, "the summed load in the same slots");
    print_summary(out, "seen then", &self->seen_replanned, "the same steps under that plan");
    print_summary(out, "bound", &self->bound, "no placement in these slots can be better");
    print_summary(out, "padded rows", &self->padded, "worst rank / mean useful rows");
}

static void print_spares(const report *self, FILE *out)
{
    for (int32_t i = 0; i < self->spares; i++) {
        const report_spare *spare = &self->spare[i];
        fprintf(out, "%s%" PRId32 " spare slot%s: %.2f (bound %.2f)", i == 0 ? "\n" : "",
                spare->slots, plural(spare->slots), spare->after.mean, spare->bound.mean);
        if (self->scored_layers > 1) {
            fprintf(out, " on average, worst layer %.2f (bound %.2f)", spare->after.worst,
                    spare->bound.worst);
        }
        fputc('\n', out);
    }
}

static void print_shares(const report *self, const token_spread *spread, const char *of, FILE *out)
{
    fprintf(out, "Share of the hottest experts, %s:", of);
    for (int i = 0; i < MOST_SHARES && 1 << i < self->experts; i++) {
        fprintf(out, "%s %d: %.1f%%", i > 0 ? "," : "", 1 << i, 100.0 * spread->shares[i]);
    }
    fputc('\n', out);
}

static void print_spread(const report *self, FILE *out)
{
    fputc('\n', out);
    char worst[32];
    snprintf(worst, sizeof(worst), "layer %" PRId32, self->worst[0]->layer_id);
    if (self->scored_layers > 1) {
        print_shares(self, &self->spread, "all layers", out);
    }
    print_shares(self, &self->worst[0]->spread, worst, out);
}

static void print_engines(const report *self, FILE *out)
{
    fprintf(out,
            "As engines print it: SGLang utilisation %.3f (mean / max), TensorRT-LLM imbalance "
            "%.3f (max / mean - 1)",
            self->engines.sglang_utilisation, self->engines.trtllm_imbalance);
    if (self->engines.vllm_balancedness > 0.0) {
        fprintf(out, ",\n  vLLM balancedness %.3f (mean / max over layers)",
                self->engines.vllm_balancedness);
    }
    fputs(".\n", out);
}

static void print_cells(FILE *out, const char *colour, const char *cell, int count)
{
    fputs(colour, out);
    for (int i = 0; i < count; i++) {
        fputs(cell, out);
    }
    fputs("\033[0m", out);
}

/* What the imbalance beyond 1 is made of. */
static void print_bar(const report *self, FILE *out)
{
    double all = self->facts.seen - 1.0;
    double share = all > 0.0 ? (self->facts.persistent - 1.0) / all : 0.0;
    int persistent = (int)lround(BAR * (share < 1.0 ? share : 1.0));
    if (all <= 0.0 || self->facts.too_few_steps) {
        return;
    }
    fputs("\n[", out);
    print_cells(out, "\033[31m", "#", persistent);
    print_cells(out, "\033[34m", "=", BAR - persistent);
    fputs("] # persistent, = noise\n", out);
}

static void print_layer_words(const report *self, FILE *out)
{
    int32_t shown = report_rows_shown(self);
    int32_t most = self->values->all ? shown : MOST_WORDS;
    if (self->scored_layers == 1) {
        return; /* the verdict says the same */
    }
    fputc('\n', out);
    for (int32_t i = 0; i < shown && i < most; i++) {
        const report_row *row = self->worst[i];
        char before[64];
        snprintf(before, sizeof(before), "layer %" PRId32 " %s: ", row->layer_id,
                 verdict_name(row->verdict.kind));
        print_long(out, before, row->words);
    }
}

static void print_verdict(const report *self, bool styled, FILE *out)
{
    fputc('\n', out);
    for (int32_t i = 0; i < self->hints; i++) {
        print_long(out, "Hint: ", self->hint[i].text);
    }
    fputs("Verdict: ", out);
    print_verdict_name(self->verdict.kind, styled, out);
    fputs(": ", out);
    int column = (int)sizeof("Verdict: : ") - 1;
    for (const char *c = verdict_name(self->verdict.kind); *c != '\0'; c++) {
        column++;
    }
    write_wrapped(out, self->words, column, 2);
    fprintf(out, "%s\n", self->next_step);
}

void report_print(const report *self, bool styled, FILE *out)
{
    print_source(self, out);
    print_placement(self, out);
    print_warning_of_excess(self, out);
    if (self->scored_layers > 0) {
        print_layer_table(self, styled, out);
        print_summaries(self, out);
        print_spares(self, out);
        print_spread(self, out);
        print_engines(self, out);
    }
    print_wait_table(self, out);
    if (self->scored_layers > 0) {
        print_layer_words(self, out);
    }
    if (styled && self->scored_layers > 0) {
        print_bar(self, out);
    }
    print_verdict(self, styled, out);
}
