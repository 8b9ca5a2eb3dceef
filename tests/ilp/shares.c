/* SPDX-License-Identifier: MIT */
/* Two ways to the best weights that share nothing: a maximum flow and a linear program. */
#include "instance.h"

#include <eplb/ilp.h>
#include <eplb/shares.h>

#include "split_cases.h"

enum { SEEDS = 1000 };

static eplb_ilp *make_ilp(const eplb_hooks *hooks)
{
    eplb_ilp *ilp = NULL;
    eplb_error error;
    assert_ok(eplb_ilp_create(&ilp, hooks, NULL, &error), &error);
    return ilp;
}

static void look_at_case(const split_case *c)
{
    eplb_ilp *ilp = make_ilp(NULL);
    eplb_error error;
    double weights[SPLIT_CASE_SLOTS];
    double largest;
    double bound;
    assert_ok(eplb_ilp_shares(ilp, c->placement, 0, c->load, weights, &largest, &bound, &error),
              &error);
    assert_close(largest, c->best_largest, 1e-9 * c->best_largest);
    assert_close(bound, c->best_largest, 1e-9 * c->best_largest);
    eplb_ilp_destroy(&ilp);
}

static void known_cases_get_their_best_weights(void **state)
{
    (void)state;
    for_each_split_case(look_at_case);
}

/* No load for experts that are on no live GPU. */
static void drop_unserved(const eplb_placement *placement, double *loads)
{
    const eplb_cluster *cluster = eplb_placement_cluster(placement);
    bool served[MOST_EXPERTS] = {false};
    for (int32_t s = 0; s < eplb_placement_slots(placement); s++) {
        int32_t expert = eplb_placement_row(placement, 0)[s];
        if (expert >= 0 && eplb_cluster_gpu_alive(cluster, gpu_of_slot(cluster, s)) == 1) {
            served[expert] = true;
        }
    }
    for (int32_t e = 0; e < eplb_placement_experts(placement); e++) {
        loads[e] = served[e] ? loads[e] : 0.0;
    }
}

static void flow_and_linear_program_agree(void **state)
{
    (void)state;
    eplb_ilp *ilp = make_ilp(NULL);
    FOR_EACH_SEED(seed, SEEDS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_placement *placement = draw_placement(&random);
        eplb_error error;
        double loads[MOST_EXPERTS];
        double weights[MOST_SLOTS];
        double by_flow;
        double by_program;
        double bound;
        draw_loads(&random, loads, eplb_placement_experts(placement));
        drop_unserved(placement, loads);
        assert_ok(eplb_shares_best(placement, 0, loads, weights, &by_flow, NULL, &error), &error);
        assert_ok(eplb_ilp_shares(ilp, placement, 0, loads, weights, &by_program, &bound, &error),
                  &error);
        assert_close(by_program, by_flow, 1e-9 * by_flow);
        assert_close(bound, by_flow, 1e-9 * by_flow);
        eplb_placement_destroy(&placement);
    }
    eplb_ilp_destroy(&ilp);
}

static eplb_placement *make_pair(const eplb_hooks *hooks)
{
    static const int32_t row[4] = {0, 1, 0, 2};
    eplb_cluster *cluster = NULL;
    eplb_placement *placement = NULL;
    assert_ok(eplb_cluster_create(&cluster, hooks, 2, 2, 0, NULL), NULL);
    assert_ok(eplb_placement_create(&placement, hooks, cluster, 1, 3, NULL), NULL);
    assert_ok(eplb_placement_set_row(placement, 0, row, NULL), NULL);
    eplb_cluster_destroy(&cluster);
    return placement;
}

static void layer_without_load_has_even_weights(void **state)
{
    (void)state;
    static const double zeros[3] = {0};
    eplb_ilp *ilp = make_ilp(NULL);
    eplb_placement *placement = make_pair(NULL);
    double weights[4];
    double largest;
    double bound;
    assert_ok(eplb_ilp_shares(ilp, placement, 0, zeros, weights, &largest, &bound, NULL), NULL);
    assert_true(largest == 0.0 && bound == 0.0);
    assert_true(weights[0] == 0.5 && weights[1] == 1.0);
    eplb_placement_destroy(&placement);
    eplb_ilp_destroy(&ilp);
}

static void loads_that_are_none_are_refused(void **state)
{
    (void)state;
    static const double loads[3] = {1, -1, 1};
    eplb_ilp *ilp = make_ilp(NULL);
    eplb_placement *placement = make_pair(NULL);
    eplb_error error;
    double weights[4];
    double largest;
    double bound;
    assert_status(eplb_ilp_shares(ilp, placement, 0, loads, weights, &largest, &bound, &error),
                  EPLB_ERROR_DATA, &error);
    assert_status(eplb_ilp_shares(ilp, placement, 1, loads, weights, &largest, &bound, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    eplb_placement_destroy(&placement);
    eplb_ilp_destroy(&ilp);
}

static eplb_status solve_with(const eplb_hooks *hooks, void *context)
{
    static const double loads[3] = {4, 3, 1};
    eplb_ilp *ilp = NULL;
    double weights[4];
    double largest;
    double bound;
    eplb_status status = eplb_ilp_create(&ilp, hooks, NULL, NULL);
    if (status == EPLB_OK) {
        status = eplb_ilp_shares(ilp, context, 0, loads, weights, &largest, &bound, NULL);
    }
    eplb_ilp_destroy(&ilp);
    return status;
}

static void failing_memory_leaks_nothing(void **state)
{
    (void)state;
    eplb_placement *placement = make_pair(NULL);
    test_each_failing_allocation(solve_with, placement);
    eplb_placement_destroy(&placement);
}

TEST_MAIN(cmocka_unit_test(known_cases_get_their_best_weights),
          seeded_test(flow_and_linear_program_agree),
          cmocka_unit_test(layer_without_load_has_even_weights),
          cmocka_unit_test(loads_that_are_none_are_refused),
          cmocka_unit_test(failing_memory_leaks_nothing))
