/* SPDX-License-Identifier: MIT */
/* A sweep for people: a row for each plan, and the answer for each number of GPUs. */
#include <inttypes.h>

#include <eplb/price.h>

#include "message.h"
#include "sweep.h"

#define SKIPS_SHOWN 8

static void print_header(const sweep *self, FILE *out)
{
    fprintf(out,
            "%" PRId32 " layer%s of %" PRId32 " expert%s, %" PRId32 " scenario%s (%s), effort "
            "%" PRId32 "\n",
            self->layers, plural(self->layers), self->experts, plural(self->experts),
            self->scenarios, plural(self->scenarios),
            eplb_objective_name((eplb_objective)self->values->objective), self->values->effort);
    fputs("Imbalance of a layer: load of the busiest GPU / mean load; 1 is perfect.\n\n", out);
    fprintf(out, "%7s %10s %10s %10s %10s %10s %10s %12s\n", "", "redundant", "slots", "mean of",
            "worst", "worst", "", "weights");
    fprintf(out, "%7s %10s %10s %10s %10s %10s %10s %12s\n", "GPUs", "experts", "per GPU", "layers",
            "layer", "scenario", "bound", "per GPU");
}

static void print_asked(const sweep_row *row, FILE *out)
{
    if (row->fewest_asked == row->redundant) {
        return;
    }
    if (row->fewest_asked == row->most_asked) {
        fprintf(out, "  for %" PRId32, row->fewest_asked);
    } else {
        fprintf(out, "  for %" PRId32 " to %" PRId32, row->fewest_asked, row->most_asked);
    }
}

static void print_row(const sweep_row *row, FILE *out)
{
    const plan_report *report = &row->report;
    const plan_scenario *worst = sweep_worst_scenario(row);
    char weights[32] = "-";
    if (report->expert_bytes > 0) {
        eplb_bytes_text(report->most_bytes, weights, sizeof(weights));
    }
    fprintf(out, "%7" PRId32 " %10" PRId32 " %10" PRId32 " %10.4f %10.4f %10.4f %10.4f %12s",
            row->gpus, row->redundant, row->slots_per_gpu, report->after.mean, report->after.worst,
            worst != NULL ? worst->after.mean : 0.0, report->bound.mean, weights);
    fputs(row->is_knee ? "  <- knee" : "", out);
    print_asked(row, out);
    fputc('\n', out);
}

static bool is_rounded(const sweep *self)
{
    for (int32_t i = 0; i < self->row_count; i++) {
        if (self->rows[i].fewest_asked != self->rows[i].redundant) {
            return true;
        }
    }
    return false;
}

static void print_remarks(const sweep *self, FILE *out)
{
    if (is_rounded(self)) {
        fputs("\"for N\": N redundant experts cannot be shared evenly by the GPUs; rounded up.\n",
              out);
    }
    for (int32_t i = 0; i < self->skip_count && i < SKIPS_SHOWN; i++) {
        fprintf(out,
                "Left out: %" PRId32 " redundant on %" PRId32 " GPU%s: more than one of each "
                "expert on each GPU.\n",
                self->skips[i].redundant, self->skips[i].gpus, plural(self->skips[i].gpus));
    }
    if (self->skip_count > SKIPS_SHOWN) {
        fprintf(out, "and %" PRId32 " more (--json lists them)\n", self->skip_count - SKIPS_SHOWN);
    }
}

/* A bound in the digits of the table. */
static double round_up(double gain)
{
    return (double)((int64_t)(gain * 1e4) + 1) / 1e4;
}

static void print_answer(const sweep_answer *answer, FILE *out)
{
    const sweep_row *knee = answer->knee;
    fprintf(out, "%" PRId32 " redundant expert%s on %" PRId32 " GPU%s: %.4f; ", knee->redundant,
            plural(knee->redundant), knee->gpus, plural(knee->gpus), knee->report.after.mean);
    if (knee == answer->last) {
        fprintf(out, "the largest number tried; more can gain %.4f at most.\n",
                round_up(knee->report.after.mean - 1.0));
    } else {
        fprintf(out, "more, up to %" PRId32 ", gains less than %.4f.\n", answer->last->redundant,
                round_up(answer->further_gain));
    }
}

void sweep_print(const sweep *self, FILE *out)
{
    print_header(self, out);
    for (int32_t i = 0; i < self->row_count; i++) {
        print_row(&self->rows[i], out);
    }
    fputc('\n', out);
    print_remarks(self, out);
    for (int32_t i = 0; i < self->answer_count; i++) {
        print_answer(&self->answers[i], out);
    }
}
