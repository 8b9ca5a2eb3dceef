/* SPDX-License-Identifier: MIT */
/* Rebalances of valid placements: few copies, nothing twice, curves. */

#define LAYERS 4
#define SEED 1
#include "migration_cases.h"
#include "rebalance_fixture.h"

/* Calls `check` with the plan of each case. */
static void for_each_case(void (*check)(const migration_case *c, const eplb_plan *plan,
                                        int32_t *context),
                          int32_t *context)
{
    cJSON *cases = read_migration_cases();
    const cJSON *object;
    cJSON_ArrayForEach(object, cases)
    {
        migration_case c = migration_case_of(object);
        eplb_rebalance_options options = rebalance_defaults();
        options.target_imbalance = c.target;
        eplb_plan *plan = rebalance_of(c.load, c.cluster, c.current, NULL, &options);
        print_message("%s: %lld copies, fewest %d\n", c.name, (long long)info_of(plan).copies,
                      c.fewest);
        check(&c, plan, context);
        assert_int_equal(copies_again(plan, c.load, c.cluster, NULL, &options), 0);
        eplb_plan_destroy(&plan);
        free_migration_case(&c);
    }
    cJSON_Delete(cases);
}

static void count_fewest(const migration_case *c, const eplb_plan *plan, int32_t *fewest)
{
    if (c->fewest >= 0) {
        assert_int_equal(rebalance_info_of(plan).target_reached, 1);
        assert_true(layer_of(plan, 0).imbalance_after <= c->target * (1.0 + 1e-9));
        assert_true(info_of(plan).copies >= c->fewest);
        *fewest += info_of(plan).copies == c->fewest;
    }
}

static void targets_of_known_cases_are_reached_with_fewest_copies(void **state)
{
    (void)state;
    int32_t fewest = 0;
    for_each_case(count_fewest, &fewest);
    assert_true(fewest >= 7);
}

static void expect_zero(const migration_case *c, const eplb_plan *plan, int32_t *seen)
{
    if (strcmp(c->name, "nothing-to-do") == 0 || strcmp(c->name, "relabelled") == 0) {
        assert_int_equal(info_of(plan).copies, 0);
        (*seen)++;
    }
}

static void balanced_placements_are_left_alone(void **state)
{
    (void)state;
    int32_t seen = 0;
    for_each_case(expect_zero, &seen);
    assert_int_equal(seen, 2);
}

static void expect_best(const migration_case *c, const eplb_plan *plan, int32_t *seen)
{
    if (c->fewest < 0) {
        eplb_rebalance_info info = rebalance_info_of(plan);
        assert_int_equal(info.target_reached, 0);
        assert_int_equal(info.layers_missed, 1);
        assert_int_equal(rebalance_layer_of(plan, 0).target_reached, 0);
        double best = strcmp(c->name, "impossible") == 0 ? 5.0 / 3.0 : 1.0 + 1.0 / 75.0;
        assert_close(layer_of(plan, 0).imbalance_after, best, 1e-9);
        (*seen)++;
    }
}

static void a_target_out_of_reach_is_said_to_be_missed_with_the_best_there_is(void **state)
{
    (void)state;
    int32_t seen = 0;
    for_each_case(expect_best, &seen);
    assert_int_equal(seen, 2);
}

static void few_copies_gain_what_a_new_plan_gains(void **state)
{
    fixture *f = *state;
    eplb_plan *plan = rebalanced(f);
    eplb_plan_info info = info_of(plan);
    eplb_rebalance_info more = rebalance_info_of(plan);
    assert_true(info.imbalance_before_mean > 1.3);
    assert_true(info.imbalance_after_mean < more.fresh_mean + 0.02);
    assert_true(info.copies > 0 && info.copies < more.fresh_copies);
    assert_int_equal(more.target_reached, -1);
    assert_int_equal(more.layers_changed, LAYERS);
    assert_int_equal(more.copies_required, 0);
    eplb_plan_destroy(&plan);
}

/* With several scenarios, all objectives and prices, with a target and without. */
static void own_result_planned_again_copies_nothing(void **state)
{
    fixture *f = *state;
    static const double prices[] = {0.0, EPLB_COPY_PRICE, 0.01};
    static const double targets[] = {-1.0, 1.1, 1.02, 1.0};
    for (int32_t i = 0; i < 2 * 3 * 3 * 4; i += 5) { /* meets each value of each */
        eplb_load *load = skewed_load(i % 2 == 0 ? 1 : 3, LAYERS, EXPERTS, (uint64_t)i);
        f->planning.objective = i / 2 % 3;
        f->options.copy_price = prices[i / 6 % 3];
        f->options.target_imbalance = targets[i / 18];
        eplb_plan *plan = rebalance_of(load, f->cluster, f->current, &f->planning, &f->options);
        assert_int_equal(copies_again(plan, load, f->cluster, &f->planning, &f->options), 0);
        eplb_plan_destroy(&plan);
        eplb_load_destroy(&load);
    }
}

static void own_result_with_pins_planned_again_copies_nothing(void **state)
{
    fixture *f = *state;
    const eplb_pin pins[] = {{.layer = -1, .expert = 3, .gpu = -1},
                             {.layer = 1, .expert = 7, .gpu = 4}};
    f->planning.pins = pins;
    f->planning.pin_count = 2;
    eplb_plan *plan = rebalanced(f);
    for (int32_t l = 0; l < LAYERS; l++) {
        int32_t counts[EXPERTS];
        assert_ok(eplb_placement_replica_counts(eplb_plan_placement(plan), l, counts, NULL), NULL);
        assert_int_equal(counts[3], GPUS);
    }
    assert_int_equal(copies_again(plan, f->load, f->cluster, &f->planning, &f->options), 0);
    eplb_plan_destroy(&plan);
}

static void own_result_with_limits_of_replicas_planned_again_copies_nothing(void **state)
{
    fixture *f = *state;
    f->planning.max_replicas = 2;
    eplb_plan *plan = rebalanced(f);
    for (int32_t l = 0; l < LAYERS; l++) {
        int32_t counts[EXPERTS];
        assert_ok(eplb_placement_replica_counts(eplb_plan_placement(plan), l, counts, NULL), NULL);
        for (int32_t e = 0; e < EXPERTS; e++) {
            assert_true(counts[e] <= 2);
        }
    }
    assert_int_equal(copies_again(plan, f->load, f->cluster, &f->planning, &f->options), 0);
    eplb_plan_destroy(&plan);
}

/* More GPUs than the best renaming is made for, with a plan from nothing taken and not. */
static void own_result_on_many_gpus_planned_again_copies_nothing(void **state)
{
    fixture *f = *state;
    const double prices[] = {EPLB_COPY_PRICE, 0.003};
    eplb_load *load = skewed_load(1, 1, 200, SEED);
    eplb_cluster *cluster = cluster_of(260, 2, 20);
    eplb_placement *current = spread_of(cluster, 1, 200);
    for (int i = 0; i < 2; i++) {
        f->options.copy_price = prices[i];
        eplb_plan *plan = rebalance_of(load, cluster, current, NULL, &f->options);
        assert_int_equal(rebalance_layer_of(plan, 0).from_fresh, i == 0);
        assert_int_equal(copies_again(plan, load, cluster, NULL, &f->options), 0);
        eplb_plan_destroy(&plan);
    }
    eplb_placement_destroy(&current);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

/* The plan from nothing, each GPU under another's number. */
static void a_new_plan_with_gpus_renamed_is_kept(void **state)
{
    fixture *f = *state;
    eplb_plan *fresh = plan_of(f->load, f->cluster, NULL, NULL);
    for (int32_t l = 0; l < LAYERS; l++) {
        int32_t row[SLOTS];
        const int32_t *from = eplb_placement_row(eplb_plan_placement(fresh), l);
        for (int32_t s = 0; s < SLOTS; s++) {
            row[(s + (l + 1) * SLOTS_PER_GPU) % SLOTS] = from[s];
        }
        assert_ok(eplb_placement_set_row(f->current, l, row, NULL), NULL);
    }
    eplb_plan *plan = rebalanced(f);
    assert_int_equal(info_of(plan).copies, 0);
    assert_int_equal(rebalance_info_of(plan).fresh_copies, 0);
    eplb_plan_destroy(&plan);
    f->options.target_imbalance = layer_of(fresh, 0).imbalance_after;
    for (int32_t l = 1; l < LAYERS; l++) {
        double other = layer_of(fresh, l).imbalance_after;
        f->options.target_imbalance = fmax(f->options.target_imbalance, other);
    }
    plan = rebalanced(f);
    assert_int_equal(info_of(plan).copies, 0);
    assert_int_equal(rebalance_info_of(plan).target_reached, 1);
    eplb_plan_destroy(&plan);
    eplb_plan_destroy(&fresh);
}

static void a_layer_without_load_keeps_its_placement(void **state)
{
    fixture *f = *state;
    const double none[EXPERTS] = {0.0};
    assert_ok(eplb_load_set_row(f->load, 0, 2, none, NULL), NULL);
    f->options.target_imbalance = 1.05;
    eplb_plan *plan = rebalanced(f);
    assert_memory_equal(eplb_placement_row(eplb_plan_placement(plan), 2),
                        eplb_placement_row(f->current, 2), SLOTS * sizeof(int32_t));
    assert_int_equal(layer_of(plan, 2).scored, 0);
    assert_int_equal(layer_of(plan, 2).copies, 0);
    assert_int_equal(rebalance_layer_of(plan, 2).target_reached, -1);
    assert_true(layer_of(plan, 1).copies > 0);
    int32_t count;
    assert_ok(eplb_plan_get_curve(plan, 2, NULL, 0, &count, NULL), NULL);
    assert_int_equal(count, 0);
    eplb_plan_destroy(&plan);
}

static void a_rebalance_without_any_load_changes_nothing(void **state)
{
    fixture *f = *state;
    eplb_load_destroy(&f->load);
    assert_ok(eplb_load_create(&f->load, NULL, 2, LAYERS, EXPERTS, NULL), NULL);
    for (int32_t objective = 0; objective < 3; objective++) {
        f->planning.objective = objective;
        eplb_plan *plan = rebalanced(f);
        int32_t count;
        assert_int_equal(info_of(plan).copies, 0);
        assert_true(rebalance_info_of(plan).fresh_mean == 0.0);
        assert_ok(eplb_plan_get_curve(plan, -1, NULL, 0, &count, NULL), NULL);
        assert_int_equal(count, 0);
        eplb_plan_destroy(&plan);
    }
}

static void any_number_of_threads_gives_the_same_bytes(void **state)
{
    fixture *f = *state;
    eplb_load_destroy(&f->load);
    f->load = skewed_load(3, LAYERS, EXPERTS, 9);
    f->options.max_copies = 9;
    eplb_plan *one = rebalanced(f);
    f->planning.threads = 8;
    eplb_plan *eight = rebalanced(f);
    assert_same_maps(one, eight);
    int32_t a;
    int32_t b;
    eplb_curve_point *first = curve_of(one, -1, &a);
    eplb_curve_point *second = curve_of(eight, -1, &b);
    assert_int_equal(a, b);
    for (int32_t i = 0; i < a; i++) {
        assert_int_equal(first[i].copies, second[i].copies);
        assert_true(first[i].imbalance == second[i].imbalance);
    }
    free(first);
    free(second);
    eplb_plan_destroy(&one);
    eplb_plan_destroy(&eight);
}

static void assert_falls(const eplb_curve_point *points, int32_t count)
{
    assert_true(count > 0);
    for (int32_t i = 1; i < count; i++) {
        assert_true(points[i].copies > points[i - 1].copies);
        assert_true(points[i].imbalance < points[i - 1].imbalance);
    }
}

static void curves_fall_from_the_current_imbalance(void **state)
{
    fixture *f = *state;
    f->options.copy_price = 0.0;
    f->options.tolerance = 0.0;
    eplb_plan *plan = rebalanced(f);
    int32_t count;
    for (int32_t l = 0; l < LAYERS; l++) {
        eplb_curve_point *points = curve_of(plan, l, &count);
        assert_falls(points, count);
        assert_int_equal(points[0].copies, 0);
        assert_close(points[0].imbalance, layer_of(plan, l).imbalance_before, 1e-9);
        assert_true(count > 3);
        free(points);
    }
    eplb_plan_destroy(&plan);
}

/* The mean over the layers, from the first points of all to the last points of all. */
static void the_whole_curve_leads_from_all_first_points_to_all_last_ones(void **state)
{
    fixture *f = *state;
    const double none[EXPERTS] = {0.0};
    assert_ok(eplb_load_set_row(f->load, 0, 1, none, NULL), NULL);
    eplb_plan *plan = rebalanced(f);
    int64_t copies = 0;
    double first = 0.0;
    double last = 0.0;
    int32_t count;
    for (int32_t l = 0; l < LAYERS; l++) {
        eplb_curve_point *points = curve_of(plan, l, &count);
        first += count > 0 ? points[0].imbalance / (LAYERS - 1) : 0.0;
        last += count > 0 ? points[count - 1].imbalance / (LAYERS - 1) : 0.0;
        copies += count > 0 ? points[count - 1].copies : 0;
        free(points);
    }
    eplb_curve_point *points = curve_of(plan, -1, &count);
    assert_falls(points, count);
    assert_int_equal(points[0].copies, 0);
    assert_close(points[0].imbalance, first, 1e-9);
    assert_close(points[0].imbalance, info_of(plan).imbalance_before_mean, 1e-9);
    assert_int_equal(points[count - 1].copies, copies);
    assert_close(points[count - 1].imbalance, last, 1e-9);
    free(points);
    eplb_plan_destroy(&plan);
}

static void a_curve_is_written_as_far_as_there_is_room(void **state)
{
    fixture *f = *state;
    eplb_plan *plan = rebalanced(f);
    int32_t all;
    eplb_curve_point *points = curve_of(plan, 0, &all);
    eplb_curve_point few[2] = {{0}, {.copies = -7}};
    int32_t count = 0;
    assert_ok(eplb_plan_get_curve(plan, 0, few, 1, &count, NULL), NULL);
    assert_int_equal(count, all);
    assert_true(few[0].imbalance == points[0].imbalance);
    assert_int_equal(few[1].copies, -7);
    free(points);
    eplb_plan_destroy(&plan);
}

static void the_knee_leaves_a_tenth_to_gain(void **state)
{
    (void)state;
    const eplb_curve_point steep[] = {{0, 2.0}, {1, 1.5}, {2, 1.25}, {3, 1.0625}, {9, 1.0}};
    assert_int_equal(eplb_curve_knee(steep, 5), 3);
    const eplb_curve_point flat[] = {{0, 1.0104}, {5, 1.006}};
    assert_int_equal(eplb_curve_knee(flat, 2), 0);
    const eplb_curve_point less[] = {{0, 1.006}, {5, 1.001}, {6, 1.0}};
    assert_int_equal(eplb_curve_knee(less, 3), 1);
    assert_int_equal(eplb_curve_knee(steep, 1), 0);
    assert_int_equal(eplb_curve_knee(steep, 0), -1);
    assert_int_equal(eplb_curve_knee(NULL, 3), -1);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

TEST_MAIN(cmocka_unit_test(targets_of_known_cases_are_reached_with_fewest_copies),
          cmocka_unit_test(balanced_placements_are_left_alone),
          cmocka_unit_test(a_target_out_of_reach_is_said_to_be_missed_with_the_best_there_is),
          cmocka_unit_test(the_knee_leaves_a_tenth_to_gain),
          with_fixture(few_copies_gain_what_a_new_plan_gains),
          with_fixture(own_result_planned_again_copies_nothing),
          with_fixture(own_result_on_many_gpus_planned_again_copies_nothing),
          with_fixture(own_result_with_pins_planned_again_copies_nothing),
          with_fixture(own_result_with_limits_of_replicas_planned_again_copies_nothing),
          with_fixture(a_new_plan_with_gpus_renamed_is_kept),
          with_fixture(a_layer_without_load_keeps_its_placement),
          with_fixture(a_rebalance_without_any_load_changes_nothing),
          with_fixture(any_number_of_threads_gives_the_same_bytes),
          with_fixture(curves_fall_from_the_current_imbalance),
          with_fixture(the_whole_curve_leads_from_all_first_points_to_all_last_ones),
          with_fixture(a_curve_is_written_as_far_as_there_is_room))
