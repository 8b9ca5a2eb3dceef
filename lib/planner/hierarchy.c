/* SPDX-License-Identifier: MIT */
#include "planner/hierarchy.h"

#include "base/memory.h"
#include "model/cluster.h"

eplb_status eplb_hierarchy_check(const char *what, const eplb_cluster *cluster, int32_t experts,
                                 int32_t groups, eplb_error *error)
{
    int32_t nodes = eplb_cluster_nodes(cluster);
    if (eplb_cluster_uniform_slots(cluster) == 0 ||
        eplb_cluster_live_gpus(cluster) != cluster->gpus) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s: all GPUs must be alive, with equally many slots", what);
    }
    if (groups == 1) {
        return EPLB_OK;
    }
    if (experts % groups != 0) {
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "%s: %d groups do not divide %d experts", what, groups, experts);
    }
    if (groups % nodes != 0) {
        return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                              "%s: %d groups do not fit %d nodes evenly; one group (no hierarchy) "
                              "always does",
                              what, groups, nodes);
    }
    for (int32_t g = 0; g < cluster->gpus; g++) {
        if (cluster->gpus % nodes != 0 || cluster->gpu[g].node != g / (cluster->gpus / nodes)) {
            return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                                  "%s: %d GPUs are not on %d equal nodes in order", what,
                                  cluster->gpus, nodes);
        }
    }
    return EPLB_OK;
}

/* The shape of so many equal GPUs. */
static eplb_status make_shape(eplb_shape *shape, const eplb_hooks *hooks, int32_t gpus,
                              int32_t slots_per_gpu, int32_t experts, eplb_error *error)
{
    eplb_cluster *cluster;
    eplb_status status = eplb_cluster_create(&cluster, hooks, gpus, slots_per_gpu, 0, error);
    if (status == EPLB_OK) {
        status = eplb_shape_init(shape, hooks, cluster, experts, error);
    }
    eplb_cluster_destroy(&cluster);
    return status;
}

eplb_status eplb_hierarchy_shape_init(eplb_hierarchy_shape *shape, const eplb_hooks *hooks,
                                      const eplb_cluster *cluster, int32_t experts, int32_t groups,
                                      eplb_error *error)
{
    int32_t nodes = eplb_cluster_nodes(cluster);
    *shape = (eplb_hierarchy_shape){.groups = groups, .nodes = nodes};
    eplb_status status = make_shape(&shape->outer, hooks, nodes, groups / nodes, groups, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_error inside;
    status = make_shape(&shape->inner, hooks, cluster->gpus / nodes,
                        eplb_cluster_uniform_slots(cluster), experts / nodes, &inside);
    return status == EPLB_OK
               ? EPLB_OK
               : eplb_error_set(error, status, "%d groups: within each of %d nodes: %.400s", groups,
                                nodes, inside.message);
}

void eplb_hierarchy_shape_free(eplb_hierarchy_shape *shape, const eplb_hooks *hooks)
{
    eplb_shape_free(&shape->outer, hooks);
    eplb_shape_free(&shape->inner, hooks);
}

static eplb_status init_joints(eplb_hierarchy *self, const eplb_hooks *hooks, int32_t scenarios,
                               eplb_error *error)
{
    eplb_objective objective = self->whole_joint->objective;
    eplb_status status =
        eplb_joint_init(&self->outer_joint, hooks, &self->outer, scenarios, objective, error);
    return status == EPLB_OK ? eplb_joint_init(&self->inner_joint, hooks, &self->inner, scenarios,
                                               objective, error)
                             : status;
}

eplb_status eplb_hierarchy_init(eplb_hierarchy *self, const eplb_hooks *hooks,
                                const eplb_hierarchy_shape *shape, eplb_layer *whole,
                                eplb_joint *joint, int32_t scenarios, eplb_error *error)
{
    size_t groups = (size_t)shape->groups;
    size_t experts = (size_t)shape->inner.experts; /* no fewer than a node's groups */
    *self = (eplb_hierarchy){.shape = shape, .whole = whole, .whole_joint = joint};
    self->sums = eplb_alloc(hooks, groups > experts ? groups : experts, sizeof(*self->sums));
    self->expert = eplb_alloc(hooks, experts, sizeof(*self->expert));
    eplb_status status =
        self->sums != NULL && self->expert != NULL ? EPLB_OK : eplb_out_of_memory(error);
    if (status == EPLB_OK) {
        status = eplb_layer_init(&self->outer, hooks, &shape->outer, error);
    }
    if (status == EPLB_OK) {
        status = eplb_layer_init(&self->inner, hooks, &shape->inner, error);
    }
    if (status == EPLB_OK) {
        status = eplb_group_search_init(&self->search, hooks, shape->groups, shape->nodes,
                                        joint != NULL ? scenarios : 1, error);
    }
    if (status == EPLB_OK && joint != NULL) {
        status = init_joints(self, hooks, scenarios, error);
    }
    return status;
}

void eplb_hierarchy_free(eplb_hierarchy *self, const eplb_hooks *hooks)
{
    eplb_joint_free(&self->outer_joint, hooks);
    eplb_joint_free(&self->inner_joint, hooks);
    eplb_group_search_free(&self->search, hooks);
    eplb_layer_free(&self->outer, hooks);
    eplb_layer_free(&self->inner, hooks);
    eplb_free(hooks, self->sums);
    eplb_free(hooks, self->expert);
    *self = (eplb_hierarchy){0};
}

static int32_t group_size(const eplb_hierarchy *self)
{
    return self->whole->shape->experts / self->shape->groups;
}

/* Sums a row of expert loads by group. */
static void sum_groups(eplb_hierarchy *self, const double *loads)
{
    int32_t size = group_size(self);
    for (int32_t group = 0; group < self->shape->groups; group++) {
        double sum = 0.0;
        for (int32_t e = group * size; e < (group + 1) * size; e++) {
            sum += loads[e];
        }
        self->sums[group] = sum;
    }
}

/* Takes the groups' nodes over from the solved outer layer. */
static void take_outer(eplb_hierarchy *self)
{
    for (int32_t slot = 0; slot < self->shape->groups; slot++) {
        self->search.best[self->outer.slot_expert[slot]] = self->shape->outer.slot_gpu[slot];
    }
}

/* Lets the search of all ways start from a quickly solved outer layer. True: there is no better way
 * than the result; where groups are many, only a long search of the outer layer is as good. */
static bool search_groups(eplb_hierarchy *self, bool is_joint)
{
    eplb_group_search *search = &self->search;
    take_outer(self);
    search->scenarios = is_joint ? self->outer_joint.scenarios : 1;
    search->load = is_joint ? self->outer_joint.load : self->sums;
    search->joint = is_joint ? &self->outer_joint : NULL;
    return eplb_group_search_run(search);
}

/* Shares out the groups for the scenarios that the whole layer's joint took. Returns a lower bound
 * of the busiest node's objective, 0 when none is known. */
static double share_groups_jointly(eplb_hierarchy *self, int32_t effort)
{
    const eplb_joint *whole = self->whole_joint;
    eplb_joint_begin(&self->outer_joint);
    for (int32_t k = 0; k < whole->scenarios; k++) {
        sum_groups(self, whole->load + (size_t)k * (size_t)whole->shape->experts);
        eplb_joint_add(&self->outer_joint, self->sums, whole->weight[k]);
    }
    (void)eplb_joint_end(&self->outer_joint);
    double bound;
    (void)eplb_joint_solve(&self->outer_joint, 1, &bound);
    if (search_groups(self, true)) {
        return self->search.value;
    }
    (void)eplb_joint_solve(&self->outer_joint, effort, &bound);
    take_outer(self);
    return bound;
}

static double share_groups_alone(eplb_hierarchy *self, int32_t effort, double total)
{
    double bound;
    eplb_effort least = eplb_effort_of(1, self->shape->groups);
    eplb_effort spend = eplb_effort_of(effort, self->shape->groups);
    sum_groups(self, self->whole->load);
    self->outer.load = self->sums;
    (void)eplb_layer_solve(&self->outer, &least, &bound);
    if (search_groups(self, false)) {
        bound = self->search.value;
    } else {
        (void)eplb_layer_solve(&self->outer, &spend, &bound);
        take_outer(self);
    }
    return bound / total * (double)self->shape->nodes;
}

/* Lists the experts of a node's groups. */
static void list_experts(eplb_hierarchy *self, int32_t node)
{
    int32_t size = group_size(self);
    int32_t count = 0;
    for (int32_t group = 0; group < self->shape->groups; group++) {
        for (int32_t i = 0; i < size && self->search.best[group] == node; i++) {
            self->expert[count++] = group * size + i;
        }
    }
}

/* Picks the node's part of a row of expert loads; returns its sum. */
static double pick_loads(eplb_hierarchy *self, const double *loads)
{
    double sum = 0.0;
    for (int32_t i = 0; i < self->shape->inner.experts; i++) {
        self->sums[i] = loads[self->expert[i]];
        sum += self->sums[i];
    }
    return sum;
}

static eplb_stop solve_inner_alone(eplb_hierarchy *self, const double *loads, int32_t effort)
{
    double bound;
    eplb_effort spend = eplb_effort_of(effort, self->shape->inner.slots);
    self->inner.load = self->sums;
    if (pick_loads(self, loads) > 0.0) {
        return eplb_layer_solve(&self->inner, &spend, &bound);
    }
    self->inner.moves = 0;
    eplb_layer_counts(&self->inner);
    (void)eplb_layer_pack(&self->inner); /* it fits */
    return EPLB_STOP_OPTIMAL;
}

/* A scenario in which the node has more load than others weighs more: its imbalance within the node
 * is relative to the node's mean. */
static eplb_stop solve_inner_jointly(eplb_hierarchy *self, int32_t effort)
{
    const eplb_joint *whole = self->whole_joint;
    size_t experts = (size_t)whole->shape->experts;
    int32_t last = 0;
    eplb_joint_begin(&self->inner_joint);
    for (int32_t k = 0; k < whole->scenarios; k++) {
        double sum = pick_loads(self, whole->load + (size_t)k * experts);
        last = sum > 0.0 ? k : last;
        eplb_joint_add(&self->inner_joint, self->sums, whole->weight[k] * sum);
    }
    if (self->inner_joint.scenarios < 2) {
        return solve_inner_alone(self, whole->load + (size_t)last * experts, effort);
    }
    (void)eplb_joint_end(&self->inner_joint);
    double bound;
    return eplb_joint_solve(&self->inner_joint, effort, &bound);
}

static void copy_node(eplb_hierarchy *self, int32_t node)
{
    int32_t slots = self->shape->inner.slots;
    for (int32_t s = 0; s < slots; s++) {
        self->whole->slot_expert[node * slots + s] = self->expert[self->inner.slot_expert[s]];
    }
}

/* Largest expert load / the most replicas that fit a node, in units of the mean GPU load. */
static double hottest_share(const eplb_hierarchy *self, const double *loads, double mean)
{
    const eplb_shape *inner = &self->shape->inner;
    double hottest = 0.0;
    for (int32_t e = 0; e < self->whole->shape->experts; e++) {
        hottest = loads[e] > hottest ? loads[e] : hottest;
    }
    int32_t spare = inner->slots - inner->experts;
    return hottest / (double)(spare + 1 < inner->gpus ? spare + 1 : inner->gpus) / mean;
}

/* Over placements that need not keep the groups, and by the hottest experts of those that do. */
static double bound_jointly(eplb_hierarchy *self)
{
    eplb_joint *whole = self->whole_joint;
    (void)eplb_joint_bound(whole, NULL);
    for (int32_t k = 0; k < whole->scenarios; k++) {
        const double *loads = whole->load + (size_t)k * (size_t)whole->shape->experts;
        double hottest = hottest_share(self, loads, 1.0);
        whole->scratch[k] = hottest > whole->scratch[k] ? hottest : whole->scratch[k];
    }
    return eplb_joint_value(whole, whole->scratch);
}

static double bound_alone(eplb_hierarchy *self, double total)
{
    eplb_layer_counts(self->whole);
    double mean = total / (double)self->whole->shape->gpus;
    double bound = eplb_layer_bound(self->whole) / mean;
    double hottest = hottest_share(self, self->whole->load, mean);
    return hottest > bound ? hottest : bound;
}

eplb_stop eplb_hierarchy_solve(eplb_hierarchy *self, bool is_joint, int32_t effort, double total,
                               double *bound)
{
    const double *loads = self->whole->load;
    *bound = is_joint ? bound_jointly(self) : bound_alone(self, total);
    double busiest_node =
        is_joint ? share_groups_jointly(self, effort) : share_groups_alone(self, effort, total);
    *bound = busiest_node > *bound ? busiest_node : *bound;
    int64_t moves = self->outer.moves;
    eplb_stop stop = EPLB_STOP_LOCAL_OPTIMUM; /* unless the bound says more */
    for (int32_t node = 0; node < self->shape->nodes; node++) {
        list_experts(self, node);
        eplb_stop inner =
            is_joint ? solve_inner_jointly(self, effort) : solve_inner_alone(self, loads, effort);
        stop = inner > stop ? inner : stop;
        moves += self->inner.moves;
        copy_node(self, node);
    }
    self->whole->moves = moves;
    self->whole->load = loads;
    eplb_layer_index(self->whole);
    return stop;
}

bool eplb_hierarchy_holds(const eplb_hierarchy_shape *shape, const eplb_layer *whole)
{
    int32_t size = whole->shape->experts / shape->groups;
    int32_t gpus_per_node = whole->shape->gpus / shape->nodes;
    for (int32_t group = 0; group < shape->groups; group++) {
        int32_t node = -1;
        for (int32_t s = 0; s < whole->shape->slots; s++) {
            if (whole->slot_expert[s] / size != group) {
                continue;
            }
            int32_t here = whole->shape->slot_gpu[s] / gpus_per_node;
            if (node >= 0 && node != here) {
                return false;
            }
            node = here;
        }
    }
    return true;
}
