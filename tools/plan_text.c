/* SPDX-License-Identifier: MIT */
/* A plan for people: the worst layers, mean and worst over all, and what to do next. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/price.h>

#include "draft_layers.h"
#include "launch.h"
#include "line.h"
#include "message.h"
#include "plan_report.h"

#define WORST_LAYERS 8

/* Worst first; equally bad layers in order. Unscored layers come last. */
static int compare_rows(const void *a, const void *b)
{
    const plan_row *first = *(const plan_row *const *)a;
    const plan_row *second = *(const plan_row *const *)b;
    if (first->after != second->after) {
        return first->after > second->after ? -1 : 1;
    }
    return first->layer_id < second->layer_id ? -1 : 1;
}

/* "9", or "3 to 9" where GPUs differ. */
static char *slots_of_gpus(const plan_report *self, char *text, size_t size)
{
    if (self->fewest_slots < self->most_slots) {
        snprintf(text, size, "%" PRId32 " to %" PRId32, self->fewest_slots, self->most_slots);
    } else {
        snprintf(text, size, "%" PRId32, self->most_slots);
    }
    return text;
}

/* "9 slots x 58 layers", or "520 slots of all layers" where layers differ. */
static char *slots_of_layers(const plan_report *self, char *text, size_t size)
{
    char slots[32];
    if (!self->layers_differ) {
        snprintf(text, size, "%s slot%s x %" PRId32 " layer%s",
                 slots_of_gpus(self, slots, sizeof(slots)), plural(self->most_slots), self->layers,
                 plural(self->layers));
    } else if (self->fewest_sum < self->most_sum) {
        snprintf(text, size, "%" PRId64 " to %" PRId64 " slots of all layers", self->fewest_sum,
                 self->most_sum);
    } else {
        snprintf(text, size, "%" PRId64 " slots of all layers", self->most_sum);
    }
    return text;
}

static void print_memory(const plan_report *self, FILE *out)
{
    char expert[32];
    char fewest[32];
    char most[32];
    char slots[96];
    bool differ = self->fewest_sum < self->most_sum;
    fprintf(out, "Weights of experts on a GPU: %s%s%s (%s x %s)\n",
            differ ? eplb_bytes_text(self->fewest_bytes, fewest, sizeof(fewest)) : "",
            differ ? " to " : "", eplb_bytes_text(self->most_bytes, most, sizeof(most)),
            slots_of_layers(self, slots, sizeof(slots)),
            eplb_bytes_text(self->expert_bytes, expert, sizeof(expert)));
}

/* "288 slots, 32 redundant", or "270 to 310 slots, 14 to 54 redundant" where layers differ. */
static char *slots_of_layer(const plan_report *self, char *text, size_t size)
{
    int32_t redundant = self->slots - self->experts;
    if (self->least_slots == self->slots) {
        snprintf(text, size, "%" PRId32 " slot%s, %" PRId32 " redundant", self->slots,
                 plural(self->slots), redundant);
    } else {
        snprintf(text, size,
                 "%" PRId32 " to %" PRId32 " slots, %" PRId32 " to %" PRId32 " redundant",
                 self->least_slots, self->slots, self->least_slots - self->experts, redundant);
    }
    return text;
}

static void print_header(const plan_report *self, FILE *out)
{
    char slots[32];
    char all[96];
    char of_draft[48];
    fprintf(out,
            "%" PRId32 " layer%s%s of %" PRId32 " expert%s on %" PRId32
            " GPU%s x %s slot%s (%s), %" PRId32 " scenario%s\n",
            self->layers, plural(self->layers),
            draft_layers_text(self->draft_layers, of_draft, sizeof(of_draft)), self->experts,
            plural(self->experts), self->gpus, plural(self->gpus),
            slots_of_gpus(self, slots, sizeof(slots)), plural(self->most_slots),
            slots_of_layer(self, all, sizeof(all)), self->scenarios, plural(self->scenarios));
    if (self->expert_bytes > 0) {
        print_memory(self, out);
    }
    if (self->live_gpus < self->gpus) {
        fprintf(out, "%" PRId32 " GPU%s dead: their slots stay empty.\n",
                self->gpus - self->live_gpus, self->gpus - self->live_gpus == 1 ? " is" : "s are");
    }
    fputs("Imbalance of a layer: load of the busiest GPU / mean load; 1 is perfect", out);
    if (self->scenarios > 1) {
        static const char *const words[] = {"mean over the scenarios",
                                            "the largest of the scenarios",
                                            "of the scenarios' summed tokens"};
        fprintf(out, " (%s: %s)", eplb_objective_name(self->objective), words[self->objective]);
    }
    fputs(".\n\n", out);
}

static void print_row(const plan_report *self, const plan_row *row, FILE *out)
{
    char before[32] = "-";
    char copies[32] = "-";
    if (self->has_current) {
        snprintf(before, sizeof(before), "%.4f", row->before);
        snprintf(copies, sizeof(copies), "%" PRId64, row->copies);
    }
    fprintf(out, "%7" PRId32 " %10s %10.4f %10.4f %10.4f %10s\n", row->layer_id, before, row->after,
            row->bound, row->after - row->bound, copies);
}

static void print_worst_layers(const plan_report *self, FILE *out)
{
    const plan_row **order = calloc((size_t)self->layers, sizeof(*order));
    if (order == NULL) {
        return; /* the summary still says how bad the worst is */
    }
    for (int32_t l = 0; l < self->layers; l++) {
        order[l] = &self->rows[l];
    }
    qsort(order, (size_t)self->layers, sizeof(*order), compare_rows);
    int32_t shown = self->scored_layers < WORST_LAYERS ? self->scored_layers : WORST_LAYERS;
    if (shown < self->scored_layers) {
        fprintf(out, "The %" PRId32 " worst layers:\n", shown);
    }
    fprintf(out, "%7s %10s %10s %10s %10s %10s\n", "layer", "before", "after", "bound", "gap",
            "copies");
    for (int32_t i = 0; i < shown; i++) {
        print_row(self, order[i], out);
    }
    free(order);
}

static void print_summary(const plan_report *self, FILE *out)
{
    fprintf(out, "\n%-16s %10s %10s\n", "Over the layers", "mean", "worst");
    fprintf(out, "%-16s %10.4f %10.4f   experts 0, 1, 2, ... and again from 0\n", "even spread",
            self->spread.mean, self->spread.worst);
    if (self->has_current) {
        fprintf(out, "%-16s %10.4f %10.4f\n", "before", self->before.mean, self->before.worst);
    }
    fprintf(out, "%-16s %10.4f %10.4f\n", "after", self->after.mean, self->after.worst);
    if (self->gains_by_weights) {
        fprintf(out, "%-16s %10.4f %10.4f   if the engine could weight replicas (--weights FILE)\n",
                "with weights", self->weighted.mean, self->weighted.worst);
    }
    plan_nodes_print_summary(self, out);
    fprintf(out, "%-16s %10.4f %10.4f   no placement %scan be better%s\n", "bound",
            self->bound.mean, self->bound.worst,
            self->nodes.groups > 1 ? "that keeps the groups "
            : self->budget.exists  ? "in these slots "
                                   : "",
            self->gains_by_weights ? " with an even split" : "");
}

/* Where " 3/16", the number of a slice, begins behind a name; else its end. */
static const char *slice_number(const char *name)
{
    static const char digits[] = "0123456789";
    const char *space = strrchr(name, ' ');
    const char *slash = space != NULL ? space + 1 + strspn(space + 1, digits) : NULL;
    bool is_slice = slash != NULL && slash > space + 1 && *slash == '/' && slash[1] != '\0' &&
                    slash[1 + strspn(slash + 1, digits)] == '\0';
    return is_slice ? space : name + strlen(name);
}

/* Paths are long: the file's name says enough. */
static const char *short_name(const char *name)
{
    const char *start = slice_number(name);
    while (start > name && start[-1] != '/') {
        start--;
    }
    return *start != '\0' ? start : name;
}

static void print_scenarios(const plan_report *self, FILE *out)
{
    fprintf(out, "\n%-32s %7s %10s %10s %10s %10s\n", "Scenario", "weight", "before", "worst",
            "after", "worst");
    for (int32_t k = 0; k < self->scenarios; k++) {
        const plan_scenario *s = &self->scenario[k];
        char text[1024];
        line shown = line_begin(text, sizeof(text));
        line_add(&shown, "%s", short_name(s->name));
        fprintf(out, "%-32s %7.3g", text, s->weight);
        if (s->layers == 0) {
            fputs("   no load\n", out);
        } else if (self->has_current) {
            fprintf(out, " %10.4f %10.4f %10.4f %10.4f\n", s->before.mean, s->before.worst,
                    s->after.mean, s->after.worst);
        } else {
            fprintf(out, " %10s %10s %10.4f %10.4f\n", "-", "-", s->after.mean, s->after.worst);
        }
    }
}

/* What the next failure would take away. With a single replica of most experts that is so on every
 * GPU and no news, unless GPUs have failed already. */
static void print_fragile_layer(const plan_report *self, FILE *out)
{
    int64_t slots = (int64_t)(self->least_slots / self->gpus) * self->live_gpus;
    bool has_room = slots >= 2 * (int64_t)self->experts;
    if (self->fragile > 0 && (has_room || self->live_gpus < self->gpus)) {
        fprintf(out,
                "A single GPU's failure would lose up to %" PRId32 " expert%s of a layer (layer "
                "%" PRId32 ", GPU %" PRId32 ")%s.\n",
                self->fragile, plural(self->fragile), self->fragile_layer_id, self->fragile_gpu,
                has_room ? "; --min-replicas 2 prevents it" : "");
    }
}

/* Experts that dead GPUs took away. */
static void print_losses(const plan_report *self, FILE *out)
{
    int32_t lost = 0;
    for (int32_t i = 0; i < self->losses; i++) {
        lost += self->loss[i].count;
    }
    if (lost > 0) {
        fprintf(out,
                "%" PRId32 " expert%s in %" PRId32 " layer%s lost the last copy with the dead "
                "GPUs: load the weights from storage.\n",
                lost, plural(lost), self->losses, plural(self->losses));
    }
    for (int32_t i = 0; i < self->losses && i < WORST_LAYERS; i++) {
        char list[16 * LOST_SHOWN];
        fprintf(out, "  layer %" PRId32 ": %s\n", self->loss[i].layer_id,
                lost_list(self->loss[i].experts, self->loss[i].count, list, sizeof(list)));
    }
    if (self->losses > WORST_LAYERS) {
        fprintf(out, "  and %" PRId32 " more layers (--json lists them)\n",
                self->losses - WORST_LAYERS);
    }
}

/* What the change costs and what it gains. */
static void print_price(const plan_report *self, FILE *out)
{
    bool one = self->copies == 1;
    fprintf(out, "%" PRId64 " %s (%.1f a layer", self->copies, one ? "copy" : "copies",
            (double)self->copies / (double)self->layers);
    if (self->expert_bytes > 0) {
        char bytes[32];
        fprintf(out, ", %s", eplb_bytes_text(self->bytes_to_copy, bytes, sizeof(bytes)));
    }
    fputc(')', out);
    if (self->scored_layers > 0) {
        fprintf(out, " %s the mean imbalance from %.4f to %.4f", one ? "takes" : "take",
                self->before.mean, self->after.mean);
    }
    fputs(".\n", out);
}

/* Whether no layer without load gets anything new. */
static bool keeps_idle_layers(const plan_report *self)
{
    for (int32_t l = 0; l < self->layers; l++) {
        if (!self->rows[l].scored && self->rows[l].copies > 0) {
            return false;
        }
    }
    return self->has_current;
}

static void print_remarks(const plan_report *self, FILE *out)
{
    int32_t unscored = self->layers - self->scored_layers;
    if (unscored > 0) {
        fprintf(out, "%" PRId32 " layer%s without any load: %s, not scored.\n", unscored,
                plural(unscored),
                keeps_idle_layers(self) ? "current placement kept" : "even spread");
    }
    if (self->has_current && self->proposes_changes) {
        print_price(self, out);
    }
    plan_rebalance_print(self, out);
    if (self->repaired_slots > 0) {
        fprintf(out, "Repaired: %" PRId64 " slot%s changed to make the plan valid.\n",
                self->repaired_slots, plural(self->repaired_slots));
    }
    plan_refinement_print(self, out);
    fprintf(out, "Algorithm %s, stopped by %s.\n", self->algorithm, eplb_stop_name(self->stop));
}

static void print_next_step(const plan_report *self, FILE *out)
{
    if (self->out != NULL) {
        const written_map map = {
            .format = self->format, .path = self->out, .redundant = self->slots - self->experts};
        print_launch_hint(&map, out);
    } else if (!self->valid) {
        fprintf(out, "INVALID: %s. Mend it with --repair, then write it with --out FILE.\n",
                self->violation);
    } else if (!self->proposes_changes) {
        fputs("No changes: keep the current placement.\n", out);
    } else {
        fputs("Write it with --out FILE [--to FORMAT].\n", out);
    }
}

void plan_report_print(const plan_report *self, FILE *out)
{
    print_header(self, out);
    if (self->scored_layers > 0) {
        print_worst_layers(self, out);
        print_summary(self, out);
    }
    if (self->scored_layers > 0 && self->scenarios > 1) {
        print_scenarios(self, out);
    }
    plan_budget_print(self, out);
    plan_nodes_print(self, out);
    print_losses(self, out);
    print_fragile_layer(self, out);
    print_remarks(self, out);
    print_next_step(self, out);
}
