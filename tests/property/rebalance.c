/* SPDX-License-Identifier: MIT */
/* What every rebalance promises, on random instances, and against brute force on tiny ones. */
#include "instance.h"
#include "rebalancing.h"

#define SEEDS 80
#define MOST_SCENARIOS 4

/* Any expert or none in each slot, or what a plan for another load has. */
static eplb_placement *draw_current(eplb_random *random, const eplb_cluster *cluster,
                                    int32_t layers, int32_t experts)
{
    eplb_placement *current;
    if (draw(random, 0, 2) > 0) {
        eplb_plan *plan;
        eplb_load *load = draw_scenarios(random, MOST_SCENARIOS, layers, experts);
        bool fits = eplb_plan_create(&plan, NULL, load, cluster, NULL, NULL, NULL) == EPLB_OK;
        eplb_load_destroy(&load);
        if (fits) {
            assert_ok(eplb_placement_clone(&current, NULL, eplb_plan_placement(plan), NULL), NULL);
            eplb_plan_destroy(&plan);
            return current;
        }
    }
    assert_ok(eplb_placement_create(&current, NULL, cluster, layers, experts, NULL), NULL);
    for (int32_t l = 0; l < layers; l++) {
        int32_t row[MOST_SLOTS];
        for (int32_t s = 0; s < eplb_placement_slots(current); s++) {
            row[s] = draw(random, -1, experts - 1);
        }
        assert_ok(eplb_placement_set_row(current, l, row, NULL), NULL);
    }
    return current;
}

/* One of everything that a rebalance takes. */
typedef struct instance {
    eplb_load *load;
    eplb_cluster *cluster;
    eplb_placement *current;
    eplb_plan_options planning;
    eplb_rebalance_options options;
} instance;

/* False: no plan exists for what was drawn. */
static bool draw_instance(instance *i, uint64_t seed)
{
    static const double targets[] = {-1.0, -1.0, 1.0, 1.05, 1.2};
    static const double prices[] = {0.0, EPLB_COPY_PRICE, 0.02};
    eplb_random random;
    eplb_random_seed(&random, seed);
    i->cluster = draw_cluster(&random);
    int32_t experts = draw(&random, 1, MOST_EXPERTS);
    int32_t layers = draw(&random, 1, 3);
    i->load = draw_scenarios(&random, MOST_SCENARIOS, layers, experts);
    eplb_plan_options_init(&i->planning);
    i->planning.objective = draw(&random, 0, 2);
    i->options = rebalance_defaults();
    i->options.target_imbalance = targets[draw(&random, 0, 4)];
    i->options.copy_price = prices[draw(&random, 0, 2)];
    i->options.beam = draw(&random, 0, 3);
    eplb_plan *plan;
    bool is_feasible =
        eplb_plan_create(&plan, NULL, i->load, i->cluster, NULL, &i->planning, NULL) == EPLB_OK;
    eplb_plan_destroy(&plan);
    i->current = is_feasible ? draw_current(&random, i->cluster, layers, experts) : NULL;
    i->options.min_gain = 0.05 * draw(&random, 0, 4);
    return is_feasible;
}

static void free_instance(instance *i)
{
    eplb_load_destroy(&i->load);
    eplb_cluster_destroy(&i->cluster);
    eplb_placement_destroy(&i->current);
}

static eplb_plan *rebalance_instance(const instance *i)
{
    return rebalance_of(i->load, i->cluster, i->current, &i->planning, &i->options);
}

static void every_rebalance_keeps_its_promises(void **state)
{
    (void)state;
    int32_t feasible = 0;
    int32_t again = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        instance i;
        if (draw_instance(&i, seed)) {
            eplb_plan *plan = rebalance_instance(&i);
            if (copies_again(plan, i.load, i.cluster, &i.planning, &i.options) > 0) {
                print_message("again: seed %llu\n", (unsigned long long)seed);
                again++;
            }
            eplb_plan_destroy(&plan);
            feasible++;
        }
        free_instance(&i);
    }
    assert_true(feasible > SEEDS / 4);
    assert_int_equal(again, 0);
}

/* GPUs have other slots now, or have failed. */
static void rebalances_onto_another_cluster_keep_their_promises(void **state)
{
    (void)state;
    int32_t again = 0;
    FOR_EACH_SEED(seed, SEEDS)
    {
        instance i;
        if (draw_instance(&i, seed)) {
            eplb_random random;
            eplb_random_seed(&random, seed);
            eplb_cluster *before =
                cluster_of(eplb_cluster_gpus(i.cluster), draw(&random, 1, MOST_SLOTS_PER_GPU), 0);
            int32_t layers = eplb_load_layers(i.load);
            eplb_placement_destroy(&i.current);
            i.current = draw_current(&random, before, layers, eplb_load_experts(i.load));
            eplb_plan *plan = rebalance_instance(&i);
            again += copies_again(plan, i.load, i.cluster, &i.planning, &i.options) > 0;
            eplb_plan_destroy(&plan);
            eplb_cluster_destroy(&before);
        }
        free_instance(&i);
    }
    assert_int_equal(again, 0);
}

static void any_number_of_threads_gives_the_same_bytes(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, SEEDS / 4)
    {
        instance i;
        if (draw_instance(&i, seed)) {
            eplb_plan *plan = rebalance_instance(&i);
            i.planning.threads = 8;
            eplb_plan *other = rebalance_instance(&i);
            assert_same_maps(plan, other);
            eplb_plan_destroy(&other);
            eplb_plan_destroy(&plan);
        }
        free_instance(&i);
    }
}

/* Copies into one GPU of a layer. */
static int64_t incoming(const eplb_placement *before, const eplb_placement *after, int32_t layer,
                        int32_t gpu)
{
    const eplb_cluster *cluster = eplb_placement_cluster(after);
    int32_t first = eplb_cluster_first_slot(cluster, gpu);
    int32_t slots = eplb_cluster_gpu_slots(cluster, gpu);
    int64_t copies = 0;
    for (int32_t s = first; s < first + slots; s++) {
        bool is_new = eplb_placement_row(after, layer)[s] >= 0;
        for (int32_t t = first; t < first + slots; t++) {
            is_new = is_new &&
                     eplb_placement_row(before, layer)[t] != eplb_placement_row(after, layer)[s];
        }
        copies += is_new;
    }
    return copies;
}

static void assert_within_limits(const instance *i, const eplb_plan *plan)
{
    eplb_rebalance_info info = rebalance_info_of(plan);
    bool is_within = info_of(plan).copies <= i->options.max_copies ||
                     info_of(plan).copies == info.copies_required;
    assert_true(i->options.max_copies < 0 || is_within);
    for (int32_t l = 0; l < eplb_load_layers(i->load); l++) {
        int64_t copies = layer_of(plan, l).copies;
        int64_t required = rebalance_layer_of(plan, l).copies_required;
        int32_t most = i->options.max_copies_per_layer;
        assert_true(most < 0 || copies <= most || copies == required);
        for (int32_t g = 0; required == 0 && g < eplb_cluster_gpus(i->cluster); g++) {
            int64_t into = incoming(i->current, eplb_plan_placement(plan), l, g);
            most = i->options.max_copies_per_gpu;
            assert_true(most < 0 || into <= most);
        }
    }
}

static void limits_are_kept(void **state)
{
    (void)state;
    FOR_EACH_SEED(seed, SEEDS)
    {
        instance i;
        if (draw_instance(&i, seed)) {
            eplb_random random;
            eplb_random_seed(&random, seed);
            i.options.max_copies = draw(&random, -1, 8);
            i.options.max_copies_per_layer = draw(&random, -1, 4);
            i.options.max_copies_per_gpu = draw(&random, -1, 2);
            eplb_plan *plan = rebalance_instance(&i);
            assert_within_limits(&i, plan);
            eplb_plan_destroy(&plan);
        }
        free_instance(&i);
    }
}

/* Of a tiny layer: every set of experts on every GPU. Sets are bits. */
#define TINY_EXPERTS 6
#define TINY_GPUS 3
#define TINY_SLOTS 3

typedef struct tiny {
    double loads[TINY_EXPERTS];
    uint32_t home[TINY_GPUS];
    uint32_t chosen[TINY_GPUS];
    double target;
    int32_t fewest; /* copies; INT32_MAX: the target is out of reach */
} tiny;

static int32_t size_of_set(uint32_t set)
{
    int32_t size = 0;
    for (; set != 0; set &= set - 1) {
        size++;
    }
    return size;
}

static void score_tiny(tiny *t)
{
    double largest = 0.0;
    double sum = 0.0;
    int32_t copies = 0;
    for (int32_t g = 0; g < TINY_GPUS; g++) {
        double load = 0.0;
        for (int32_t e = 0; e < TINY_EXPERTS; e++) {
            int32_t count = 0;
            for (int32_t h = 0; h < TINY_GPUS; h++) {
                count += (int32_t)(t->chosen[h] >> e & 1u);
            }
            if (count == 0) {
                return;
            }
            load += t->chosen[g] >> e & 1u ? t->loads[e] / count : 0.0;
        }
        largest = load > largest ? load : largest;
        sum += load;
        copies += size_of_set(t->chosen[g] & ~t->home[g]);
    }
    if (largest * TINY_GPUS <= t->target * sum * (1.0 + 1e-9) && copies < t->fewest) {
        t->fewest = copies;
    }
}

static void try_tiny(tiny *t, int32_t gpu)
{
    if (gpu == TINY_GPUS) {
        score_tiny(t);
        return;
    }
    for (uint32_t set = 0; set < 1u << TINY_EXPERTS; set++) {
        if (size_of_set(set) == TINY_SLOTS) {
            t->chosen[gpu] = set;
            try_tiny(t, gpu + 1);
        }
    }
}

static tiny draw_tiny(eplb_random *random, int32_t *row)
{
    tiny t = {.fewest = INT32_MAX, .target = 1.0 + 0.05 * draw(random, 1, 8)};
    for (int32_t e = 0; e < TINY_EXPERTS; e++) {
        t.loads[e] = draw(random, 1, 40);
    }
    int32_t shift = draw(random, 0, TINY_EXPERTS - 1);
    for (int32_t s = 0; s < TINY_GPUS * TINY_SLOTS; s++) {
        row[s] = (s + shift) % TINY_EXPERTS;
        t.home[s / TINY_SLOTS] |= 1u << row[s];
    }
    return t;
}

static void tiny_layers_get_nearly_the_fewest_copies(void **state)
{
    (void)state;
    int32_t reachable = 0;
    int32_t reached = 0;
    int32_t fewest = 0;
    int32_t excess = 0;
    FOR_EACH_SEED(seed, 100)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        int32_t row[TINY_GPUS * TINY_SLOTS];
        tiny t = draw_tiny(&random, row);
        try_tiny(&t, 0);
        eplb_load *load = load_of(t.loads, 1, TINY_EXPERTS);
        eplb_cluster *cluster = cluster_of(TINY_GPUS, TINY_SLOTS, 0);
        eplb_placement *current = placement_with_rows(cluster, row, 1, TINY_EXPERTS);
        eplb_rebalance_options options = rebalance_defaults();
        options.target_imbalance = t.target;
        eplb_plan *plan = rebalance_of(load, cluster, current, NULL, &options);
        if (t.fewest == INT32_MAX) {
            assert_int_equal(rebalance_info_of(plan).target_reached, 0);
        } else {
            reachable++;
            if (rebalance_info_of(plan).target_reached == 1) {
                assert_true(info_of(plan).copies >= t.fewest);
                reached++;
                fewest += info_of(plan).copies == t.fewest;
                excess += (int32_t)info_of(plan).copies - t.fewest;
            }
        }
        eplb_plan_destroy(&plan);
        eplb_load_destroy(&load);
        eplb_cluster_destroy(&cluster);
        eplb_placement_destroy(&current);
    }
    print_message("%d targets can be reached, %d are, %d with the fewest copies, %d too many\n",
                  reachable, reached, fewest, excess);
    assert_true(reachable >= 50);
    assert_true(reached >= reachable * 19 / 20);
    assert_true(fewest >= reachable * 3 / 4);
}

TEST_MAIN(seeded_test(every_rebalance_keeps_its_promises),
          seeded_test(rebalances_onto_another_cluster_keep_their_promises),
          seeded_test(any_number_of_threads_gives_the_same_bytes), seeded_test(limits_are_kept),
          seeded_test(tiny_layers_get_nearly_the_fewest_copies))
