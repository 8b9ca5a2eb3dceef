/* SPDX-License-Identifier: MIT */
/* The report's last line: what to do, as a command where there is one. */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "line.h"
#include "message.h"
#include "report.h"

static bool has_control(const char *text)
{
    while (*text != '\0' && !iscntrl((unsigned char)*text)) {
        text++;
    }
    return *text != '\0';
}

/* Writes an argument so that a shell takes it as it was; what could steer a terminal is left to the
 * reader. */
static void add_argument(line *out, const char *text)
{
    if (has_control(text)) {
        line_add(out, "FILE");
        return;
    }
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "_./+=:@%,-";
    if (text[strspn(text, plain)] == '\0') {
        line_add(out, "%s", text);
        return;
    }
    line_add(out, "'");
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            line_add(out, "'\\''");
        } else {
            line_add(out, "%c", *text);
        }
    }
    line_add(out, "'");
}

static void add_text_option(line *out, const char *name, const char *value)
{
    if (value != NULL) {
        line_add(out, " --%s ", name);
        add_argument(out, value);
    }
}

static void add_int_option(line *out, const char *name, int32_t value)
{
    if (value > 0) {
        line_add(out, " --%s %" PRId32, name, value);
    }
}

static void add_dense_layers(line *out, const id_list *dense)
{
    if (dense->items == NULL) {
        return;
    }
    line_add(out, " --dense-layers %s", dense->count > 0 ? "" : "none");
    for (int32_t i = 0; i < dense->count; i++) {
        line_add(out, "%s%" PRId32, i > 0 ? "," : "", dense->items[i]);
    }
}

/* Plans have equally many slots on each GPU: at least so many. */
static int32_t whole_slots(const report *self, int32_t slots)
{
    return (slots + self->gpus - 1) / self->gpus * self->gpus;
}

/* Says how many where they are more than the ones spoken of. */
static void say_slots(const report *self, int32_t slots, line *out)
{
    int32_t whole = whole_slots(self, slots);
    if (whole > slots) {
        line_add(out, " (%" PRId32 " slots on each GPU)", whole / self->gpus);
    }
}

static void add_plan(const report *self, int32_t slots, const char *source, line *out)
{
    const report_values *values = self->values;
    line_add(out, "eplb plan");
    add_text_option(out, "load", source);
    add_text_option(out, "from", values->from);
    add_int_option(out, "experts", values->experts);
    add_dense_layers(out, &values->dense_layers);
    add_text_option(out, "current", values->current);
    add_int_option(out, "gpus", self->gpus);
    add_int_option(out, "gpus-per-node", values->gpus_per_node);
    add_int_option(out, "slots", whole_slots(self, slots));
    line_add(out, " --out FILE");
}

static void say_more_tokens(const report *self, line *out)
{
    line_add(out, "Put more tokens into a step%s; a new placement will not help.",
             self->gpus > 1 ? ", or the same tokens on fewer GPUs" : "");
}

/* A plan for the parts of the window, which a plan for their sum does not serve: with one more slot
 * on each GPU, if that is of use, for the experts that are hot in different parts. */
static void say_parts(const report *self, const char *source, line *out)
{
    int32_t more = self->spares > 0 ? self->spare[self->spares - 1].slots : 0;
    line_add(out, "Loads wander: plan for the parts of the window: ");
    add_plan(self, self->slots + more, source, out);
}

static void say_too_short(const report *self, line *out)
{
    line_add(out, "Record about %" PRId64 " steps and report again.", self->verdict.steps_needed);
}

static void say_remedy(const report *self, const char *remedy, int32_t slots, const char *source,
                       line *out)
{
    line_add(out, "%s%s", remedy, self->verdict.certain ? "" : ", if it lasts");
    say_slots(self, slots, out);
    line_add(out, ": ");
    add_plan(self, slots, source, out);
}

static void say_fine(const report *self, line *out)
{
    int32_t others = self->scored_layers - self->verdicts[VERDICT_FINE];
    line_add(out, "Nothing to do: look elsewhere.");
    if (others > 0) {
        line_add(out, " %" PRId32 " layer%s out of line, too few to matter.", others,
                 others == 1 ? " is" : "s are");
    }
}

void report_say_next_step(report *self, const char *source)
{
    line out = line_begin(self->next_step, sizeof(self->next_step));
    bool is_noise = self->verdict.kind == VERDICT_TOO_SHORT ||
                    (self->verdict.kind == VERDICT_MORE_TOKENS && !is_padding(&self->facts));
    if (is_noise && report_has_hint(self, HINT_LOADS_WANDER)) {
        say_parts(self, source, &out);
        return;
    }
    switch (self->verdict.kind) {
    case VERDICT_NO_LOAD:
        line_add(&out, "Record steps with tokens and report again: nothing was routed.");
        break;
    case VERDICT_FINE:
        say_fine(self, &out);
        break;
    case VERDICT_MORE_TOKENS:
        say_more_tokens(self, &out);
        break;
    case VERDICT_REBALANCE:
        say_remedy(self, "Rebalance", self->slots, source, &out);
        break;
    case VERDICT_REPLICATE:
        say_remedy(self, "Replicate", self->slots + self->facts.spare[self->verdict.spare].slots,
                   source, &out);
        break;
    case VERDICT_NOTHING_TO_GAIN:
        line_add(&out, "Nothing to do: no placement takes it, and spare slots do not either.");
        break;
    case VERDICT_TOO_SHORT:
        say_too_short(self, &out);
        break;
    }
}
