/* SPDX-License-Identifier: MIT */
/* What exact optimisation gained over the search. */
#include <inttypes.h>

#include "message.h"
#include "plan_report.h"

eplb_status plan_refinement_measure(plan_report *self, const plan_subject *subject,
                                    eplb_error *error)
{
    plan_refinement *refinement = &self->refinement;
    eplb_plan_info info = {.struct_size = sizeof(info)};
    refinement->asked = subject->is_refined;
    eplb_status status = eplb_plan_get_info(subject->plan, &info, error);
    refinement->searched = info.imbalance_searched_mean;
    refinement->bound_searched = info.bound_searched_mean;
    refinement->nodes = info.refine_nodes;
    for (int32_t l = 0; l < self->layers && status == EPLB_OK; l++) {
        eplb_plan_layer layer = {.struct_size = sizeof(layer)};
        status = eplb_plan_get_layer(subject->plan, l, &layer, error);
        refinement->optimal_layers += layer.scored && layer.stop == EPLB_STOP_OPTIMAL;
    }
    return status;
}

/* As far as four decimals show it. */
static bool differ(double a, double b)
{
    return a - b > 0.00005 || b - a > 0.00005;
}

static void print_change(FILE *out, const char *what, double before, double after)
{
    if (differ(before, after)) {
        fprintf(out, " mean %s from %.4f to %.4f,", what, before, after);
    } else {
        fprintf(out, " mean %s as before,", what);
    }
}

void plan_refinement_print(const plan_report *self, FILE *out)
{
    const plan_refinement *refinement = &self->refinement;
    if (!refinement->asked || self->scored_layers == 0) {
        return;
    }
    /* With a budget the search by itself might have chosen other slots. */
    fprintf(out, "Exact optimisation%s:", self->budget.exists ? " in these slots" : "");
    print_change(out, "imbalance", refinement->searched, self->after.mean);
    print_change(out, "bound", refinement->bound_searched, self->bound.mean);
    fprintf(out, " %" PRId32 " of %" PRId32 " layer%s proven optimal (%" PRId64 " node%s).\n",
            refinement->optimal_layers, self->scored_layers, plural(self->scored_layers),
            refinement->nodes, plural(refinement->nodes));
}
