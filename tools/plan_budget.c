/* SPDX-License-Identifier: MIT */
/* What layers with different numbers of slots gain, and which layers have how many. */
#include <inttypes.h>

#include "line.h"
#include "message.h"
#include "plan_report.h"

#define MOST_LINES 6 /* of the table of slots */

eplb_status plan_budget_measure(plan_report *self, const plan_subject *subject, eplb_error *error)
{
    if (!subject->has_layer_budget) {
        return EPLB_OK;
    }
    plan_budget *budget = &self->budget;
    budget->info.struct_size = sizeof(budget->info);
    eplb_status status = eplb_plan_get_layer_budget(subject->plan, &budget->info, error);
    for (int32_t l = 0; l < self->layers && status == EPLB_OK; l++) {
        eplb_layer_budget_layer layer = {.struct_size = sizeof(layer)};
        status = eplb_plan_get_budget_layer(subject->plan, l, &layer, error);
        self->rows[l].uniform = layer.imbalance_uniform;
    }
    budget->exists = status == EPLB_OK;
    return status;
}

/* "3-5, 9": the layers with slots in a range. Returns how many. */
static int32_t list_layers(const plan_report *self, int32_t low, int32_t high, line *out)
{
    int32_t count = 0;
    for (int32_t l = 0; l < self->layers; l++) {
        int32_t first = l;
        while (l < self->layers && self->rows[l].slots >= low && self->rows[l].slots <= high) {
            l++;
        }
        if (l == first) {
            continue;
        }
        line_add(out, count > 0 ? ", %" PRId32 : "%" PRId32, self->rows[first].layer_id);
        if (l - first > 1) {
            line_add(out, "-%" PRId32, self->rows[l - 1].layer_id);
        }
        count += l - first;
    }
    return count;
}

static void print_slots(const plan_report *self, FILE *out)
{
    int32_t fewest = self->budget.info.fewest_slots;
    int32_t width = (self->budget.info.most_slots - fewest) / MOST_LINES + 1;
    fprintf(out, "%14s %10s   %s\n", "slots", "layers", "which");
    for (int32_t low = fewest; low <= self->budget.info.most_slots; low += width) {
        int32_t high = low + width - 1;
        high = high < self->budget.info.most_slots ? high : self->budget.info.most_slots;
        char which[256];
        line list = line_begin(which, sizeof(which));
        int32_t count = list_layers(self, low, high, &list);
        char range[32];
        snprintf(range, sizeof(range), low < high ? "%" PRId32 " to %" PRId32 : "%" PRId32, low,
                 high);
        if (count > 0) {
            fprintf(out, "%14s %10" PRId32 "   %s\n", range, count, which);
        }
    }
}

static void print_gain(const eplb_layer_budget_info *info, FILE *out)
{
    if (!info->has_uniform) {
        fprintf(out,
                "Sum of the layers' imbalances: %.4f. The memory does not hold the experts in "
                "layers with equally many slots.\n",
                info->sum);
        return;
    }
    if (info->is_uniform) {
        fprintf(out,
                "Nothing is gained by different numbers of slots in layers: each has %" PRId32
                ", and the sum of the layers' imbalances stays %.4f.\n",
                info->uniform_slots, info->sum);
        return;
    }
    double gain = info->sum_uniform - info->sum;
    fprintf(out,
            "Sum of the layers' imbalances: %.4f with %" PRId32 " slots in each, %.4f with %" PRId32
            " to %" PRId32 ": %.4f (%.2f %%) less.\n",
            info->sum_uniform, info->uniform_slots, info->sum, info->fewest_slots, info->most_slots,
            gain, info->sum_uniform > 0.0 ? 100.0 * gain / info->sum_uniform : 0.0);
}

void plan_budget_print(const plan_report *self, FILE *out)
{
    const eplb_layer_budget_info *info = &self->budget.info;
    if (!self->budget.exists) {
        return;
    }
    fprintf(out, "\nMemory for %" PRId64 " slots of %" PRId32 " layer%s, %" PRId64 " used.\n",
            info->budget, self->layers, plural(self->layers), info->used);
    print_gain(info, out);
    if (info->fewest_slots < info->most_slots) {
        print_slots(self, out);
    }
}
