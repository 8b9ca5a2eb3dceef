/* SPDX-License-Identifier: MIT */
/* The report's last line: what to do, as a command where there is one. */
#include <inttypes.h>
#include <string.h>

#include "line.h"
#include "message.h"
#include "report.h"

/* Writes an argument so that a shell takes it as it was. */
static void add_argument(line *out, const char *text)
{
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

/* A plan with at least so many slots. Plans have equally many on each GPU. */
static void add_plan(const report *self, int32_t slots, const char *source, line *out)
{
    const report_values *values = self->values;
    int32_t gpus = self->gpus;
    line_add(out, "eplb plan");
    add_text_option(out, "load", source);
    add_text_option(out, "from", values->from);
    add_int_option(out, "experts", values->experts);
    add_dense_layers(out, &values->dense_layers);
    add_text_option(out, "current", values->current);
    add_int_option(out, "gpus", gpus);
    add_int_option(out, "gpus-per-node", values->gpus_per_node);
    add_int_option(out, "slots", (slots + gpus - 1) / gpus * gpus);
    line_add(out, " --out FILE");
}

static void say_more_tokens(const report *self, line *out)
{
    line_add(out, "Put more tokens into a step%s; a new placement will not help.",
             self->gpus > 1 ? ", or the same tokens on fewer GPUs" : "");
}

static void say_too_short(const report *self, line *out)
{
    line_add(out, "Record about %" PRId64 " steps and report again.", self->verdict.steps_needed);
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
    const char *doubt = self->verdict.certain ? "" : ", if it lasts";
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
        line_add(&out, "Rebalance%s: ", doubt);
        add_plan(self, self->slots, source, &out);
        break;
    case VERDICT_REPLICATE:
        line_add(&out, "Replicate%s: ", doubt);
        add_plan(self, self->slots + self->facts.spare[self->verdict.spare].slots, source, &out);
        break;
    case VERDICT_NOTHING_TO_GAIN:
        line_add(&out, "Nothing to do: no placement takes it, and spare slots do not either.");
        break;
    case VERDICT_TOO_SHORT:
        say_too_short(self, &out);
        break;
    }
}
