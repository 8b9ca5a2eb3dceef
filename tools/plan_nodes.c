/* SPDX-License-Identifier: MIT */
/* What a plan means to nodes: groups that are kept on them, tokens that leave them. */
#include <inttypes.h>

#include "plan_report.h"

/* Mean share over the scored layers. */
static eplb_status mean_traffic(const plan_report *self, const plan_subject *subject,
                                const eplb_placement *placement, double *mean, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    int32_t scored = 0;
    double sum = 0.0;
    for (int32_t l = 0; l < self->layers && status == EPLB_OK; l++) {
        double share = 0.0;
        if (self->rows[l].scored) {
            status = eplb_placement_traffic(placement, l, subject->load, l, subject->objective,
                                            &share, error);
            sum += share;
            scored++;
        }
    }
    *mean = scored > 0 ? sum / (double)scored : 0.0;
    return status;
}

static eplb_status measure_choices(plan_nodes *nodes, const plan_subject *subject,
                                   eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t i = 0; i < EPLB_NODE_CHOICES && status == EPLB_OK; i++) {
        nodes->choices[i].struct_size = sizeof(nodes->choices[i]);
        status = eplb_plan_get_node_choice(subject->plan, i, &nodes->choices[i], error);
    }
    return status;
}

eplb_status plan_nodes_measure(plan_report *self, const plan_subject *subject, eplb_error *error)
{
    plan_nodes *nodes = &self->nodes;
    nodes->nodes = eplb_cluster_nodes(eplb_placement_cluster(subject->placement));
    nodes->groups = subject->without_groups != NULL ? subject->groups : 1;
    nodes->has_node_cost = subject->has_node_cost;
    nodes->node_cost = subject->node_cost;
    eplb_status status = EPLB_OK;
    if (subject->without_groups != NULL) {
        eplb_plan_info info = {.struct_size = sizeof(info)};
        status = eplb_plan_get_info(subject->without_groups, &info, error);
        nodes->without_groups =
            (summary){.mean = info.imbalance_after_mean, .worst = info.imbalance_after_worst};
    }
    if (status == EPLB_OK && nodes->has_node_cost) {
        status = measure_choices(nodes, subject, error);
    }
    if (status == EPLB_OK) {
        status = mean_traffic(self, subject, subject->placement, &nodes->cross_node_after, error);
    }
    return status == EPLB_OK && subject->current != NULL
               ? mean_traffic(self, subject, subject->current, &nodes->cross_node_before, error)
               : status;
}

void plan_nodes_print_summary(const plan_report *self, FILE *out)
{
    const plan_nodes *nodes = &self->nodes;
    if (nodes->groups > 1) {
        fprintf(out, "%-16s %10.4f %10.4f   if replicas could be on any node\n", "without groups",
                nodes->without_groups.mean, nodes->without_groups.worst);
    }
}

static void print_choices(const plan_nodes *nodes, const plan_report *self, FILE *out)
{
    fprintf(out, "\n%-26s %10s %10s %12s\n", "Balance against traffic", "mean", "worst",
            "leave a node");
    for (int32_t i = 0; i < EPLB_NODE_CHOICES; i++) {
        const eplb_node_choice *choice = &nodes->choices[i];
        char name[32] = "no look at traffic";
        if (choice->exchanges) {
            snprintf(name, sizeof(name), "GPUs exchanged");
        }
        if (choice->tolerance > 0.0) {
            snprintf(name, sizeof(name), "and swaps within %.1f %%", 100.0 * choice->tolerance);
        }
        fprintf(out, "%-26s %10.4f %10.4f %10.2f %%\n", name, choice->imbalance_mean,
                choice->imbalance_worst, 100.0 * choice->cross_node);
    }
    char name[64];
    snprintf(name, sizeof(name), "the plan, at cost %g", nodes->node_cost);
    fprintf(out, "%-26s %10.4f %10.4f %10.2f %%\n", name, self->after.mean, self->after.worst,
            100.0 * nodes->cross_node_after);
}

void plan_nodes_print(const plan_report *self, FILE *out)
{
    const plan_nodes *nodes = &self->nodes;
    if (self->scored_layers == 0 || nodes->nodes < 2) {
        return;
    }
    if (nodes->has_node_cost) {
        print_choices(nodes, self, out);
    }
    fprintf(out, "\n%.2f %% of (token, expert) pairs leave their node",
            100.0 * nodes->cross_node_after);
    if (self->has_current) {
        fprintf(out, ", %.2f %% before", 100.0 * nodes->cross_node_before);
    }
    fprintf(out, " (%" PRId32 " nodes, each token at its nearest replica).\n", nodes->nodes);
}
