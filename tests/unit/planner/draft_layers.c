/* SPDX-License-Identifier: MIT */
/* Layers of the draft model are planned like others, and stay what they are. */
#include "rebalancing.h"

#include <eplb/layer_budget.h>

enum { LAYERS = 3, EXPERTS = 8, GPUS = 4, SLOTS_PER_GPU = 3 };

/* Makes a plan in one of the ways there are. */
typedef eplb_status (*planner)(eplb_plan **plan, const eplb_load *load, const eplb_cluster *cluster,
                               const eplb_placement *current, const eplb_plan_options *options,
                               eplb_error *error);

static eplb_status plan(eplb_plan **plan, const eplb_load *load, const eplb_cluster *cluster,
                        const eplb_placement *current, const eplb_plan_options *options,
                        eplb_error *error)
{
    return eplb_plan_create(plan, NULL, load, cluster, current, options, error);
}

static eplb_status rebalance(eplb_plan **plan, const eplb_load *load, const eplb_cluster *cluster,
                             const eplb_placement *current, const eplb_plan_options *options,
                             eplb_error *error)
{
    return eplb_rebalance_create(plan, NULL, load, cluster, current, options, NULL, error);
}

/* With slots that equal layers cannot use. */
static eplb_status plan_in_budget(eplb_plan **plan, const eplb_load *load,
                                  const eplb_cluster *cluster, const eplb_placement *current,
                                  const eplb_plan_options *options, eplb_error *error)
{
    static const int64_t budget[GPUS] = {10, 10, 10, 10};
    return eplb_plan_create_in_budget(plan, NULL, load, cluster, budget, current, options, error);
}

static const planner planners[] = {plan, rebalance, plan_in_budget};
enum { PLANNERS = sizeof(planners) / sizeof(planners[0]), REBALANCE = 1 };

typedef struct fixture {
    eplb_load *load;
    eplb_cluster *cluster;
    eplb_placement *current; /* its last layer is the draft model's */
    eplb_plan_options options;
} fixture;

static int setup(void **state)
{
    fixture *f = malloc(sizeof(*f));
    f->load = skewed_load(1, LAYERS, EXPERTS, 7);
    f->cluster = cluster_of(GPUS, SLOTS_PER_GPU, 0);
    f->current = spread_of(f->cluster, LAYERS, EXPERTS);
    assert_ok(eplb_placement_set_draft_layers(f->current, 1, NULL), NULL);
    eplb_plan_options_init(&f->options);
    f->options.effort = 1;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    eplb_load_destroy(&f->load);
    eplb_cluster_destroy(&f->cluster);
    eplb_placement_destroy(&f->current);
    free(f);
    return 0;
}

/* The number in the plan's placement. */
static int32_t planned_draft_layers(const fixture *f, planner make, const eplb_placement *current)
{
    eplb_error error;
    eplb_plan *made;
    assert_ok(make(&made, f->load, f->cluster, current, &f->options, &error), &error);
    int32_t count = eplb_placement_draft_layers(eplb_plan_placement(made));
    eplb_plan_destroy(&made);
    return count;
}

static void plans_keep_those_of_the_current_placement(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < PLANNERS; i++) {
        f->options.draft_layers = -1;
        assert_int_equal(planned_draft_layers(f, planners[i], f->current), 1);
        f->options.draft_layers = 1;
        assert_int_equal(planned_draft_layers(f, planners[i], f->current), 1);
    }
}

static void options_say_it_without_a_current_placement(void **state)
{
    fixture *f = *state;
    assert_int_equal(f->options.draft_layers, -1);
    for (int i = 0; i < PLANNERS; i++) {
        for (int32_t count = -1; i != REBALANCE && count < LAYERS; count++) {
            f->options.draft_layers = count;
            assert_int_equal(planned_draft_layers(f, planners[i], NULL), count > 0 ? count : 0);
        }
    }
}

/* They are a name for layers, and change nothing in the placement. */
static void rows_do_not_depend_on_it(void **state)
{
    fixture *f = *state;
    eplb_plan *plain = plan_of(f->load, f->cluster, NULL, &f->options);
    f->options.draft_layers = 2;
    eplb_plan *marked = plan_of(f->load, f->cluster, NULL, &f->options);
    assert_same_maps(plain, marked);
    eplb_plan_destroy(&plain);
    eplb_plan_destroy(&marked);
}

static void refuse(fixture *f, planner make, const eplb_placement *current, int32_t count,
                   const char *message)
{
    eplb_error error;
    eplb_plan *made = (eplb_plan *)&error;
    f->options.draft_layers = count;
    assert_status(make(&made, f->load, f->cluster, current, &f->options, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_null(made);
    assert_string_equal(error.message, message);
}

static void contradictions_are_refused(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < PLANNERS; i++) {
        refuse(f, planners[i], f->current, 0,
               "plan: draft_layers 0, but 1 in the current placement");
        refuse(f, planners[i], f->current, 2,
               "plan: draft_layers 2, but 1 in the current placement");
    }
    refuse(f, plan, NULL, LAYERS, "plan: draft_layers 3 not in 0..2");
    refuse(f, plan, NULL, -2, "plan: draft_layers -2 not in 0..2");
}

static void a_repair_keeps_them(void **state)
{
    fixture *f = *state;
    static const int32_t broken[GPUS * SLOTS_PER_GPU] = {0, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3};
    assert_ok(eplb_placement_set_row(f->current, 2, broken, NULL), NULL);
    int64_t changed = 0;
    assert_ok(eplb_placement_repair(f->current, f->load, &changed, NULL), NULL);
    assert_true(changed > 0);
    assert_int_equal(eplb_placement_draft_layers(f->current), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

TEST_MAIN(TEST(plans_keep_those_of_the_current_placement),
          TEST(options_say_it_without_a_current_placement), TEST(rows_do_not_depend_on_it),
          TEST(contradictions_are_refused), TEST(a_repair_keeps_them))
