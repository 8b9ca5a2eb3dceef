/* SPDX-License-Identifier: MIT */
/* What a plan from the placement in force tells: what other numbers of copies would have given, why
 * it has so many, and when they have paid. */
#include <inttypes.h>
#include <stdlib.h>

#include "message.h"
#include "output.h"
#include "plan_rebalance.h"
#include "plan_report.h"

/* Points of a curve are shown when they have so many times as many copies as the one before. */
#define CURVE_STRIDE 4

static eplb_status read_curve(plan_rebalance *self, const eplb_plan *plan, eplb_error *error)
{
    eplb_status status = eplb_plan_get_curve(plan, -1, NULL, 0, &self->points, error);
    if (status != EPLB_OK) {
        return status;
    }
    self->curve = calloc((size_t)self->points + 1, sizeof(*self->curve));
    if (self->curve == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    status = eplb_plan_get_curve(plan, -1, self->curve, self->points, &self->points, error);
    self->knee = eplb_curve_knee(self->curve, self->points);
    return status;
}

/* With buffers, so that not a copy more is made than counted. */
static eplb_status schedule(eplb_migration **migration, const plan_subject *subject,
                            eplb_error *error)
{
    eplb_migration_options options;
    eplb_migration_options_init(&options);
    options.mode = EPLB_MIGRATION_STAGED;
    options.buffer_slots = -1;
    return eplb_migration_create(migration, NULL, subject->current, subject->placement, &options,
                                 error);
}

static eplb_status judge(plan_report *self, const plan_subject *subject, eplb_error *error)
{
    plan_rebalance *rebalance = &self->rebalance;
    eplb_gpu_copies *copies = calloc((size_t)self->gpus, sizeof(*copies));
    if (copies == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    eplb_migration *migration;
    eplb_status status = schedule(&migration, subject, error);
    if (status == EPLB_OK) {
        status = price_judge(&rebalance->terms, migration, self->scored_layers, self->before.mean,
                             self->after.mean, copies, &rebalance->payoff, error);
        eplb_migration_destroy(&migration);
    }
    free(copies);
    return status;
}

eplb_status plan_rebalance_measure(plan_report *self, const plan_subject *subject,
                                   eplb_error *error)
{
    if (subject->rebalance == NULL) {
        return EPLB_OK;
    }
    const plan_values *values = subject->rebalance_values;
    self->rebalance = (plan_rebalance){.exists = true,
                                       .target = values->target_imbalance,
                                       .is_limited = values->max_copies >= 0,
                                       .layers_are_limited = values->max_copies_per_layer >= 0 ||
                                                             values->max_copies_per_gpu >= 0,
                                       .looks_for_fewest = plan_looks_for_fewest(values),
                                       .has_min_gain = values->min_gain > 0.0,
                                       .terms = *subject->rebalance};
    plan_rebalance *rebalance = &self->rebalance;
    rebalance->info.struct_size = sizeof(rebalance->info);
    eplb_status status =
        plan_copy_price(&rebalance->terms, values, eplb_placement_cluster(subject->placement),
                        &rebalance->copy_price, error);
    if (status == EPLB_OK) {
        status = eplb_plan_get_rebalance(subject->plan, &rebalance->info, error);
    }
    if (status == EPLB_OK) {
        status = read_curve(rebalance, subject->plan, error);
    }
    if (status == EPLB_OK) {
        status = plan_fewest_measure(self, subject, error);
    }
    return status == EPLB_OK ? judge(self, subject, error) : status;
}

/* "Curve: 14 copies: 1.4100 -> 1.0500 (knee); 60: 1.0100; 240: 1.0010", with a point far before the
 * knee where there is one. */
static void print_curve(const plan_rebalance *self, FILE *out)
{
    const eplb_curve_point *curve = self->curve;
    int64_t knee = self->knee >= 0 ? curve[self->knee].copies : 0;
    int64_t next = knee / CURVE_STRIDE > curve[0].copies ? knee / CURVE_STRIDE : knee;
    int shown = 0;
    for (int32_t i = 1; i < self->points; i++) {
        bool is_last = i + 1 == self->points;
        if (curve[i].copies < next && i != self->knee && !is_last) {
            continue;
        }
        if (shown++ == 0) {
            fprintf(out, "Curve: %" PRId64 " %s: %.4f -> ", curve[i].copies,
                    curve[i].copies == 1 ? "copy" : "copies", curve[0].imbalance);
        } else {
            fprintf(out, "; %" PRId64 ": ", curve[i].copies);
        }
        fprintf(out, "%.4f%s", curve[i].imbalance, i == self->knee ? " (knee)" : "");
        next = i < self->knee ? knee : curve[i].copies * CURVE_STRIDE;
    }
    fputs(".\n", out);
}

/* Why so many copies, and not more or fewer. */
static void print_choice(const plan_rebalance *self, FILE *out)
{
    const char *within = self->layers_are_limited ? ", within the limits of layers and GPUs" : "";
    if (self->target >= 0.0 && self->info.layers_missed > 0) {
        fprintf(out,
                "The target %.10g is not reached in %" PRId32 " layer%s: these are as good as was "
                "found%s.\n",
                self->target, self->info.layers_missed, plural(self->info.layers_missed),
                self->is_limited || self->layers_are_limited || self->has_min_gain
                    ? " within the limits given"
                    : "");
    } else if (self->target >= 0.0) {
        fprintf(out, "Chosen: the fewest copies found that bring each layer to %.10g.\n",
                self->target);
    } else if (self->is_limited) {
        fputs("Chosen: the copies that gain most, within --max-copies.\n", out);
    } else if (self->copy_price > 0.0) {
        fprintf(
            out,
            "Chosen: copies that take more than %.2g each from the imbalance of their layer%s.\n",
            self->copy_price, within);
    } else {
        fprintf(out, "Chosen: as if copies were free%s.\n", within);
    }
}

void plan_rebalance_print(const plan_report *self, FILE *out)
{
    const plan_rebalance *rebalance = &self->rebalance;
    if (!rebalance->exists) {
        return;
    }
    if (rebalance->points > 1) {
        print_curve(rebalance, out);
    }
    print_choice(rebalance, out);
    plan_fewest_print(self, out);
    int64_t required = rebalance->info.copies_required;
    if (required > 0) {
        fprintf(out, "%" PRId64 " of the copies %s needed for a valid placement, whatever %s.\n",
                required, required == 1 ? "is" : "are", required == 1 ? "it gains" : "they gain");
    }
    if (rebalance->payoff.copies > 0 && self->scored_layers > 0 &&
        (required == 0 || rebalance->payoff.gain_seconds > 0.0)) {
        price_print(&rebalance->terms, &rebalance->payoff, out);
    }
}

static void add_point(cJSON *list, const eplb_curve_point *point)
{
    cJSON *object = cJSON_CreateObject();
    json_add_integer(object, "copies", point->copies);
    cJSON_AddNumberToObject(object, "imbalance", point->imbalance);
    cJSON_AddItemToArray(list, object);
}

void plan_rebalance_add_json(cJSON *document, const plan_report *self)
{
    const plan_rebalance *rebalance = &self->rebalance;
    if (!rebalance->exists) {
        cJSON_AddNullToObject(document, "target_reached");
        return;
    }
    const eplb_rebalance_info *info = &rebalance->info;
    if (info->target_reached < 0) {
        cJSON_AddNullToObject(document, "target_reached");
    } else {
        cJSON_AddBoolToObject(document, "target_reached", info->target_reached != 0);
    }
    json_add_number(document, "target_imbalance", rebalance->target >= 0.0, rebalance->target);
    json_add_integer(document, "copies_required", info->copies_required);
    cJSON_AddNumberToObject(document, "copy_price", rebalance->copy_price);
    json_add_payoff(document, "payoff", &rebalance->terms,
                    self->scored_layers > 0 ? &rebalance->payoff : NULL);
    cJSON *curve = cJSON_AddArrayToObject(document, "curve");
    for (int32_t i = 0; i < rebalance->points; i++) {
        add_point(curve, &rebalance->curve[i]);
    }
    json_add_known_integer(document, "knee_copies", rebalance->knee >= 0,
                           rebalance->knee >= 0 ? rebalance->curve[rebalance->knee].copies : 0);
}
