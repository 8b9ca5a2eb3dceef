/* SPDX-License-Identifier: MIT */
#include "report_table.h"

#include <inttypes.h>

#include "line.h"
#include "message.h"
#include "wrap.h"

#define WORST_LAYERS 12

static int32_t at_most(const report *self, int32_t rows)
{
    return self->values->all || rows < WORST_LAYERS ? rows : WORST_LAYERS;
}

int32_t report_rows_shown(const report *self)
{
    return at_most(self, self->scored_layers);
}

void print_verdict_name(verdict_kind kind, bool styled, FILE *out)
{
    static const char *const colours[VERDICT_KINDS] = {
        [VERDICT_NO_LOAD] = "33",   [VERDICT_FINE] = "32",      [VERDICT_MORE_TOKENS] = "31",
        [VERDICT_REBALANCE] = "31", [VERDICT_REPLICATE] = "31", [VERDICT_NOTHING_TO_GAIN] = "33",
        [VERDICT_TOO_SHORT] = "33",
    };
    if (styled) {
        fprintf(out, "\033[%sm%s\033[0m", colours[kind], verdict_name(kind));
    } else {
        fputs(verdict_name(kind), out);
    }
}

static void print_heading(FILE *out)
{
    fprintf(out, "\n%12s%-24s%18s%7s%24s%15s%7s%6s\n", "", " imbalance of the steps", "", "after",
            "busiest experts", "padded", "beyond", "GPUs");
    fprintf(out, "%5s%7s%6s%6s%6s%6s%12s%6s%7s%11s%5s%8s%7s%7s%6s  %s\n", "layer", "steps", "mean",
            "p50", "p99", "worst", "persistent", "noise", "replan", "hottest", "GPU", "touched",
            "rows", "cap", "idle", "verdict");
}

/* Decimals of a number that may be large, so that it leaves a blank in a column of six. */
static int decimals(double value, int most)
{
    int digits = value < 100.0 ? 2 : value < 1000.0 ? 1 : 0;
    return digits < most ? digits : most;
}

static void print_ratio(double value, int width, FILE *out)
{
    fprintf(out, "%*.*f", width, decimals(value, 2), value);
}

/* "1.42+-0.02", or "5.00 ?" where steps are too few to tell. */
static void print_persistent(const report_row *row, FILE *out)
{
    char text[48];
    double persistent = row->facts.persistent;
    int digits = decimals(persistent, 2);
    if (row->verdict.certain) {
        snprintf(text, sizeof(text), "%.*f+-%.*f", digits, persistent, digits, row->verdict.error);
    } else {
        snprintf(text, sizeof(text), "%.*f ?", digits, persistent);
    }
    fprintf(out, "%12s", text);
    if (row->facts.too_few_steps) {
        fprintf(out, "%6s", "-");
    } else {
        double noise = row->split.noise;
        print_ratio(noise > -0.005 && noise < 0.0 ? 0.0 : noise, 6, out);
    }
}

static void print_row(const report_row *row, bool styled, FILE *out)
{
    const eplb_layer_stats *stats = &row->stats;
    const double imbalances[] = {stats->imbalance_mean, stats->imbalance_p50, stats->imbalance_p99,
                                 stats->imbalance_worst};
    char hottest[48];
    snprintf(hottest, sizeof(hottest), "%" PRId32 " %.*fx", stats->hottest_experts[0],
             decimals(stats->hottest_ratios[0], 1), stats->hottest_ratios[0]);
    fprintf(out, "%5" PRId32 "%7" PRId64, row->layer_id, stats->steps);
    for (size_t i = 0; i < sizeof(imbalances) / sizeof(imbalances[0]); i++) {
        print_ratio(imbalances[i], 6, out);
    }
    print_persistent(row, out);
    print_ratio(row->facts.planned, 7, out);
    double padded = stats->padded_worst_rank;
    fprintf(out, "%11s%5" PRId32 "%7.0f%%%6.*fx%6.1f%%%5.0f%%  ", hottest, row->split.busiest_gpu,
            100.0 * stats->experts_touched, decimals(padded, 1), padded, 100.0 * stats->dropped,
            100.0 * stats->idle_others);
    print_verdict_name(row->verdict.kind, styled, out);
    fputc('\n', out);
}

/* What is not in the table. */
static void print_rest(const report *self, int32_t shown, FILE *out)
{
    int32_t more = self->scored_layers - shown;
    if (more > 0) {
        fprintf(out, "%" PRId32 " more layer%s, persistent %.2f to %.2f (--all shows %s).\n", more,
                plural(more), self->worst[self->scored_layers - 1]->facts.persistent,
                self->worst[shown]->facts.persistent, more == 1 ? "it" : "them");
    }
}

static void print_legend(const report *self, FILE *out)
{
    char text[2 * REPORT_LINE];
    line words = line_begin(text, sizeof(text));
    line_add(&words,
             "Imbalance: tokens of the busiest GPU / mean; 1 is perfect. Persistent (+- standard "
             "error): what lasts, for a placement to mend; noise: what only more tokens in a step "
             "can. Hottest: expert and its tokens / fair share. Rows: padded to tiles of %" PRId32
             " on the worst rank / mean useful ones. Cap: tokens beyond capacity factor %g; "
             "dropping them would change outputs. Idle: how long the other GPUs wait for the "
             "busiest.",
             self->values->tile, self->values->capacity_factor);
    write_wrapped(out, text, 0, 0);
}

void print_layer_table(const report *self, bool styled, FILE *out)
{
    int32_t shown = report_rows_shown(self);
    print_heading(out);
    for (int32_t i = 0; i < shown; i++) {
        print_row(self->worst[i], styled, out);
    }
    print_rest(self, shown, out);
    print_legend(self, out);
}

static void print_wait_row(const report_wait_row *row, FILE *out)
{
    static const char *const agreements[] = {"", "  agrees", "  differs"};
    const eplb_layer_waits *waits = &row->waits;
    char busiest[16] = "-";
    if (row->busiest_gpu >= 0) {
        snprintf(busiest, sizeof(busiest), "%" PRId32, row->busiest_gpu);
    }
    fprintf(out, "%5" PRId32 " %10" PRId64 " %9.1f %9.1f %8" PRId32 " %12.1f %12" PRId32 " %8s%s\n",
            waits->layer_id, waits->samples, waits->p50, waits->p99, waits->worst_rank,
            waits->worst_rank_p99, waits->least_rank, busiest, agreements[row->agreement]);
}

void print_wait_table(const report *self, FILE *out)
{
    const report_waits *waits = &self->waits;
    if (waits->layers == 0) {
        return;
    }
    fprintf(out, "\nWaits in all-to-all, microseconds\n%5s %10s %9s %9s %8s %12s %12s %8s\n",
            "layer", "samples", "p50", "p99", "longest:", "rank's p99", "others wait", "busiest");
    fprintf(out, "%5s %10s %9s %9s %8s %12s %12s %8s\n", "", "", "", "", "rank", "", "for rank",
            "GPU");
    int32_t shown = at_most(self, waits->layers);
    for (int32_t l = 0; l < shown; l++) {
        print_wait_row(&waits->rows[l], out);
    }
    if (shown < waits->layers) {
        fprintf(out, "%" PRId32 " more layers (--all shows them).\n", waits->layers - shown);
    }
    if (waits->unknown > 0) {
        fprintf(out, "%" PRId32 " layer%s without tokens in the load: nothing to compare with.\n",
                waits->unknown, plural(waits->unknown));
    }
    if (waits->info.missing_ranks > 0) {
        fprintf(out, "%" PRId32 " rank%s without any wait.\n", waits->info.missing_ranks,
                plural(waits->info.missing_ranks));
    }
}
