/* SPDX-License-Identifier: MIT */
/* Plans that keep groups on nodes or have a price for traffic, on random instances. */
#include "instance.h"
#include "planning.h"

#include <eplb/plan.h>

#define SEEDS 120
#define MOST_GROUPS 6
#define MOST_SCENARIOS 3
#define ROUNDING 1e-9

/* A small load of some scenarios; every layer has some load in each. */
static eplb_load *draw_load(eplb_random *random, int32_t layers, int32_t experts)
{
    int32_t scenarios = draw(random, 1, MOST_SCENARIOS);
    eplb_load *load;
    assert_ok(eplb_load_create(&load, NULL, scenarios, layers, experts, NULL), NULL);
    for (int32_t i = 0; i < scenarios * layers; i++) {
        double row[MOST_EXPERTS];
        draw_loads(random, row, experts);
        row[0] += 1.0;
        assert_ok(eplb_load_set_row(load, i / layers, i % layers, row, NULL), NULL);
        double weight = (double)draw(random, 1, 5);
        assert_ok(eplb_load_set_scenario(load, i / layers, NULL, weight, NULL), NULL);
    }
    return load;
}

static eplb_node_choice choice_of(const eplb_plan *plan, int32_t choice)
{
    eplb_node_choice result = {.struct_size = sizeof(result)};
    assert_ok(eplb_plan_get_node_choice(plan, choice, &result, NULL), NULL);
    return result;
}

/* The same on more threads, and nothing to copy from its own result. */
static void assert_settled(const eplb_load *load, const eplb_cluster *cluster,
                           const eplb_plan_options *options, const eplb_plan *plan)
{
    eplb_plan_options more = *options;
    more.threads = 3;
    eplb_plan *other = plan_of(load, cluster, NULL, &more);
    assert_same_maps(plan, other);
    eplb_plan_destroy(&other);
    other = plan_of(load, cluster, eplb_plan_placement(plan), options);
    assert_int_equal(info_of(other).copies, 0);
    assert_same_maps(plan, other);
    eplb_plan_destroy(&other);
}

/* Groups of equal size on equal nodes. */
typedef struct grouped {
    int32_t nodes;
    int32_t groups;
    int32_t experts;
    eplb_cluster *cluster;
    eplb_load *load;
} grouped;

static grouped draw_grouped(eplb_random *random)
{
    grouped g = {.nodes = draw(random, 2, 3)};
    int32_t groups_per_node = draw(random, 1, g.nodes == 2 ? 3 : 2);
    int32_t gpus_per_node = draw(random, 1, 3);
    int32_t experts_per_group = draw(random, 1, 4);
    g.groups = g.nodes * groups_per_node;
    g.experts = g.groups * experts_per_group;
    int32_t experts_per_node = groups_per_node * experts_per_group;
    int32_t fewest = (experts_per_node + gpus_per_node - 1) / gpus_per_node;
    int32_t slots = draw(random, fewest, fewest + 2);
    slots = slots < experts_per_node ? slots : experts_per_node;
    assert_ok(
        eplb_cluster_create(&g.cluster, NULL, g.nodes * gpus_per_node, slots, gpus_per_node, NULL),
        NULL);
    g.load = draw_load(random, 2, g.experts);
    return g;
}

static void assert_groups_on_nodes(const grouped *g, const int32_t *row)
{
    int32_t slots = eplb_cluster_slots(g->cluster);
    int32_t node_of_group[MOST_GROUPS];
    memset(node_of_group, -1, sizeof(node_of_group));
    for (int32_t s = 0; s < slots; s++) {
        int32_t group = row[s] / (g->experts / g->groups);
        int32_t node = s / (slots / g->nodes);
        assert_true(node_of_group[group] == -1 || node_of_group[group] == node);
        node_of_group[group] = node;
    }
}

static void groups_stay_whole_on_their_nodes(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        grouped g = draw_grouped(&random);
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.effort = draw(&random, 1, 3);
        options.objective = draw(&random, EPLB_OBJECTIVE_MEAN_OF_MAX, EPLB_OBJECTIVE_SUM);
        options.groups = g.groups;
        eplb_plan *plan = plan_of(g.load, g.cluster, NULL, &options);
        assert_ok(eplb_placement_validate(eplb_plan_placement(plan), 0, NULL), NULL);
        for (int32_t l = 0; l < 2; l++) {
            assert_groups_on_nodes(&g, eplb_placement_row(eplb_plan_placement(plan), l));
            assert_true(layer_of(plan, l).lower_bound <= layer_of(plan, l).imbalance_after);
        }
        assert_settled(g.load, g.cluster, &options, plan);
        eplb_plan_destroy(&plan);
        eplb_load_destroy(&g.load);
        eplb_cluster_destroy(&g.cluster);
    }
}

/* Tries all ways to put groups on nodes: the least objective that the nodes' loads allow. */
typedef struct sharing {
    const grouped *g;
    int32_t layer;
    bool largest_counts;
    int32_t node[MOST_GROUPS];
    double best;
} sharing;

static double load_of_group(const grouped *g, int32_t scenario, int32_t layer, int32_t group)
{
    int32_t size = g->experts / g->groups;
    double sum = 0.0;
    for (int32_t e = group * size; e < (group + 1) * size; e++) {
        sum += eplb_load_row(g->load, scenario, layer)[e];
    }
    return sum;
}

static double busiest_node(const sharing *s, int32_t scenario)
{
    double node_load[3] = {0};
    double total = 0.0;
    double largest = 0.0;
    for (int32_t group = 0; group < s->g->groups; group++) {
        double load = load_of_group(s->g, scenario, s->layer, group);
        node_load[s->node[group]] += load;
        total += load;
    }
    for (int32_t n = 0; n < s->g->nodes; n++) {
        largest = fmax(largest, node_load[n]);
    }
    return largest / total * s->g->nodes;
}

static void score_sharing(sharing *s)
{
    double weights = 0.0;
    double sum = 0.0;
    double largest = 0.0;
    for (int32_t k = 0; k < eplb_load_scenarios(s->g->load); k++) {
        double imbalance = busiest_node(s, k);
        sum += eplb_load_scenario_weight(s->g->load, k) * imbalance;
        weights += eplb_load_scenario_weight(s->g->load, k);
        largest = fmax(largest, imbalance);
    }
    s->best = fmin(s->best, s->largest_counts ? largest : sum / weights);
}

static void try_sharing(sharing *s, int32_t group)
{
    if (group == s->g->groups || group == MOST_GROUPS) {
        score_sharing(s);
        return;
    }
    for (int32_t n = 0; n < s->g->nodes; n++) {
        int32_t there = 0;
        for (int32_t other = 0; other < group; other++) {
            there += s->node[other] == n ? 1 : 0;
        }
        s->node[group] = n;
        if (there < s->g->groups / s->g->nodes) {
            try_sharing(s, group + 1);
        }
    }
}

static void bound_is_what_the_best_sharing_of_groups_leaves(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        grouped g = draw_grouped(&random);
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.groups = g.groups;
        options.effort = 2;
        options.objective = draw(&random, EPLB_OBJECTIVE_MEAN_OF_MAX, EPLB_OBJECTIVE_MAX_OF_MAX);
        eplb_plan *plan = plan_of(g.load, g.cluster, NULL, &options);
        for (int32_t l = 0; l < 2; l++) {
            sharing s = {.g = &g,
                         .layer = l,
                         .largest_counts = options.objective == EPLB_OBJECTIVE_MAX_OF_MAX,
                         .best = INFINITY};
            try_sharing(&s, 0);
            assert_true(layer_of(plan, l).lower_bound >= s.best * (1.0 - ROUNDING));
            /* With one GPU a node there is nothing else to decide. */
            if (eplb_cluster_gpus(g.cluster) == g.nodes) {
                assert_true(layer_of(plan, l).imbalance_after <= s.best * (1.0 + ROUNDING));
            }
        }
        eplb_plan_destroy(&plan);
        eplb_load_destroy(&g.load);
        eplb_cluster_destroy(&g.cluster);
    }
}

/* The public number again, from the definition: for each source GPU and expert, whether a node mate
 * holds it. */
static double share_by_definition(const eplb_placement *placement, int32_t layer,
                                  const double *loads)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    const int32_t *row = eplb_placement_row(placement, layer);
    int32_t live = eplb_cluster_live_gpus(cluster);
    double leaving = 0.0;
    double total = 0.0;
    for (int32_t e = 0; e < eplb_placement_experts(placement); e++) {
        total += loads[e];
        for (int32_t source = 0; source < eplb_cluster_gpus(cluster); source++) {
            bool stays = false;
            for (int32_t s = 0; s < eplb_cluster_slots(cluster); s++) {
                int32_t gpu = gpu_of_slot(cluster, s);
                stays = stays || (row[s] == e && eplb_cluster_gpu_alive(cluster, gpu) &&
                                  eplb_cluster_gpu_node(cluster, gpu) ==
                                      eplb_cluster_gpu_node(cluster, source));
            }
            if (eplb_cluster_gpu_alive(cluster, source) && !stays) {
                leaving += loads[e] / live;
            }
        }
    }
    return total > 0.0 ? leaving / total : 0.0;
}

/* Shapes with uneven and dead GPUs that fit the experts. */
static bool draw_priced(eplb_random *random, eplb_cluster **cluster, eplb_load **load)
{
    *cluster = draw_cluster(random);
    int32_t experts = draw(random, 1, MOST_EXPERTS);
    *load = draw_load(random, 2, experts);
    bool fits = eplb_cluster_live_slots(*cluster) >= experts;
    for (int32_t g = 0; g < eplb_cluster_gpus(*cluster); g++) {
        fits = fits && (!eplb_cluster_gpu_alive(*cluster, g) ||
                        eplb_cluster_gpu_slots(*cluster, g) <= experts);
    }
    if (!fits) {
        eplb_load_destroy(load);
        eplb_cluster_destroy(cluster);
    }
    return fits;
}

static double mean_share_by_definition(const eplb_load *load, const eplb_placement *placement)
{
    double mean = 0.0;
    for (int32_t l = 0; l < eplb_load_layers(load); l++) {
        double weights = 0.0;
        double sum = 0.0;
        for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
            double weight = eplb_load_scenario_weight(load, k);
            sum += weight * share_by_definition(placement, l, eplb_load_row(load, k, l));
            weights += weight;
        }
        mean += sum / weights / eplb_load_layers(load);
    }
    return mean;
}

static double price_of(const eplb_load *load, const eplb_placement *placement, int32_t layer,
                       const eplb_plan_options *options)
{
    double imbalance;
    double share;
    eplb_objective objective = (eplb_objective)options->objective;
    assert_ok(eplb_placement_objective(placement, layer, load, layer, objective, &imbalance, NULL),
              NULL);
    assert_ok(eplb_placement_traffic(placement, layer, load, layer, objective, &share, NULL), NULL);
    return imbalance + options->node_cost * share;
}

static void plans_with_a_price_keep_their_contract(void **state)
{
    (void)state;
    int planned = 0;
    FOR_EACH_SEED(seed, 2 * SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_cluster *cluster;
        eplb_load *load;
        if (!draw_priced(&random, &cluster, &load)) {
            continue;
        }
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.effort = draw(&random, 1, 3);
        options.objective = draw(&random, EPLB_OBJECTIVE_MEAN_OF_MAX, EPLB_OBJECTIVE_SUM);
        eplb_plan *plain = plan_of(load, cluster, NULL, &options);
        options.node_cost = 0.1 * draw(&random, 0, 20);
        eplb_plan *plan = plan_of(load, cluster, NULL, &options);
        assert_ok(eplb_placement_validate(eplb_plan_placement(plan), 0, NULL), NULL);
        for (int32_t l = 0; l < 2; l++) {
            eplb_plan_layer layer = layer_of(plan, l);
            assert_true(layer.lower_bound <= layer.imbalance_after);
            assert_true(layer.stop != EPLB_STOP_OPTIMAL ||
                        layer.imbalance_after <= layer.lower_bound * (1.0 + ROUNDING));
            assert_true(price_of(load, eplb_plan_placement(plan), l, &options) <=
                        price_of(load, eplb_plan_placement(plain), l, &options) * (1.0 + ROUNDING));
        }
        assert_settled(load, cluster, &options, plan);
        planned++;
        eplb_plan_destroy(&plan);
        eplb_plan_destroy(&plain);
        eplb_load_destroy(&load);
        eplb_cluster_destroy(&cluster);
    }
    assert_true(planned > SEEDS / 2);
}

static void choices_are_what_they_say(void **state)
{
    (void)state;
    int gained = 0;
    FOR_EACH_SEED(seed, 2 * SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_cluster *cluster;
        eplb_load *load;
        if (!draw_priced(&random, &cluster, &load)) {
            continue;
        }
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.effort = 2;
        eplb_plan *plain = plan_of(load, cluster, NULL, &options);
        options.node_cost = 0.0;
        eplb_plan *plan = plan_of(load, cluster, NULL, &options);
        eplb_node_choice first = choice_of(plan, 0);
        assert_true(fabs(first.cross_node -
                         mean_share_by_definition(load, eplb_plan_placement(plain))) <= ROUNDING);
        eplb_node_choice before = first;
        for (int32_t i = 1; i < EPLB_NODE_CHOICES; i++) {
            eplb_node_choice choice = choice_of(plan, i);
            assert_true(choice.cross_node <= before.cross_node + ROUNDING);
            assert_true(choice.imbalance_mean <=
                        first.imbalance_mean * (1.0 + choice.tolerance) + ROUNDING);
            before = choice;
        }
        /* Whole GPUs change places: their loads do not. */
        assert_true(fabs(choice_of(plan, 1).imbalance_mean - first.imbalance_mean) <= ROUNDING);
        assert_true(fabs(choice_of(plan, 1).imbalance_worst - first.imbalance_worst) <= ROUNDING);
        gained += before.cross_node < first.cross_node - ROUNDING;
        eplb_plan_destroy(&plan);
        eplb_plan_destroy(&plain);
        eplb_load_destroy(&load);
        eplb_cluster_destroy(&cluster);
    }
    print_message("%d instances lowered their traffic\n", gained);
    assert_true(gained > SEEDS / 8);
}

/* At a price that nothing else matters beside. */
static void every_scenario_keeps_within_the_largest_tolerance(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_cluster *cluster;
        eplb_load *load;
        if (!draw_priced(&random, &cluster, &load)) {
            continue;
        }
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.effort = 2;
        eplb_plan *plain = plan_of(load, cluster, NULL, &options);
        options.node_cost = 1e6;
        eplb_plan *plan = plan_of(load, cluster, NULL, &options);
        for (int32_t i = 0; i < 2 * eplb_load_scenarios(load); i++) {
            const double *row = eplb_load_row(load, i / 2, i % 2);
            double before;
            double after;
            assert_ok(
                eplb_placement_imbalance(eplb_plan_placement(plain), i % 2, row, &before, NULL),
                NULL);
            assert_ok(eplb_placement_imbalance(eplb_plan_placement(plan), i % 2, row, &after, NULL),
                      NULL);
            assert_true(after <= before * 1.05 * (1.0 + ROUNDING));
        }
        eplb_plan_destroy(&plan);
        eplb_plan_destroy(&plain);
        eplb_load_destroy(&load);
        eplb_cluster_destroy(&cluster);
    }
}

static void priced_plan_is_never_dearer_than_what_it_starts_from(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        int32_t gpus = draw(&random, 2, MOST_GPUS);
        int32_t slots_per_gpu = draw(&random, 1, 4);
        int32_t experts = draw(&random, slots_per_gpu, gpus * slots_per_gpu);
        experts = experts < MOST_EXPERTS ? experts : MOST_EXPERTS;
        eplb_cluster *cluster;
        int32_t gpus_per_node = draw(&random, 1, gpus);
        assert_ok(eplb_cluster_create(&cluster, NULL, gpus, slots_per_gpu, gpus_per_node, NULL),
                  NULL);
        eplb_load *old_load = draw_load(&random, 2, experts);
        eplb_load *new_load = draw_load(&random, 2, experts);
        eplb_plan_options options;
        eplb_plan_options_init(&options);
        options.effort = 3;
        options.node_cost = 0.1 * draw(&random, 0, 20);
        eplb_plan *old_plan = plan_of(old_load, cluster, NULL, &options);
        options.effort = 1;
        eplb_plan *plan = plan_of(new_load, cluster, eplb_plan_placement(old_plan), &options);
        for (int32_t l = 0; l < 2; l++) {
            assert_true(price_of(new_load, eplb_plan_placement(plan), l, &options) <=
                        price_of(new_load, eplb_plan_placement(old_plan), l, &options) *
                            (1.0 + ROUNDING));
        }
        eplb_plan_destroy(&plan);
        eplb_plan_destroy(&old_plan);
        eplb_load_destroy(&new_load);
        eplb_load_destroy(&old_load);
        eplb_cluster_destroy(&cluster);
    }
}

TEST_MAIN(seeded_test(groups_stay_whole_on_their_nodes),
          seeded_test(bound_is_what_the_best_sharing_of_groups_leaves),
          seeded_test(plans_with_a_price_keep_their_contract),
          seeded_test(choices_are_what_they_say),
          seeded_test(every_scenario_keeps_within_the_largest_tolerance),
          seeded_test(priced_plan_is_never_dearer_than_what_it_starts_from))
