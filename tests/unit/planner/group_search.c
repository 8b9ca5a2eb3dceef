/* SPDX-License-Identifier: MIT */
/* Groups on nodes, all ways tried. */
#include "support.h"

#include "planner/group_search.h"

enum { MOST = 66 };

static eplb_group_search make(int32_t groups, int32_t nodes, const double *loads)
{
    eplb_hooks hooks;
    eplb_group_search search;
    eplb_hooks_init(&hooks);
    assert_ok(eplb_group_search_init(&search, &hooks, groups, nodes, 1, NULL), NULL);
    search.scenarios = 1;
    search.load = loads;
    for (int32_t group = 0; group < groups; group++) {
        search.best[group] = group / (groups / nodes);
    }
    return search;
}

static void release(eplb_group_search *search)
{
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    eplb_group_search_free(search, &hooks);
}

/* Load of the busiest node, each of which must have its number of groups. */
static double busiest(const eplb_group_search *search)
{
    double largest = 0.0;
    for (int32_t n = 0; n < search->nodes; n++) {
        int32_t count = 0;
        double sum = 0.0;
        for (int32_t group = 0; group < search->groups; group++) {
            count += search->best[group] == n ? 1 : 0;
            sum += search->best[group] == n ? search->load[group] : 0.0;
        }
        assert_int_equal(count, search->groups / search->nodes);
        largest = fmax(largest, sum);
    }
    return largest;
}

/* 9 + 3 + 3 against 7 + 5 + 3, and no other way comes near. */
static void best_way_is_found_from_any_start(void **state)
{
    (void)state;
    eplb_group_search search = make(6, 2, (const double[]){9, 7, 5, 3, 3, 3});
    assert_true(busiest(&search) == 21.0);
    assert_true(eplb_group_search_run(&search));
    assert_true(search.value == 15.0);
    assert_true(busiest(&search) == 15.0);
    release(&search);
}

/* Each node gets one of the large and one of the small ones, in reverse. */
static void more_than_two_nodes_are_shared_out(void **state)
{
    (void)state;
    eplb_group_search search = make(8, 4, (const double[]){8, 7, 6, 5, 4, 3, 2, 1});
    assert_true(eplb_group_search_run(&search));
    assert_true(search.value == 9.0);
    assert_true(busiest(&search) == 9.0);
    release(&search);
}

static void too_many_ways_keep_the_start(void **state)
{
    (void)state;
    double loads[MOST];
    for (int32_t group = 0; group < MOST; group++) {
        loads[group] = group;
    }
    eplb_group_search search = make(MOST, 2, loads);
    double start = busiest(&search);
    assert_false(eplb_group_search_run(&search));
    assert_true(search.value == start);
    assert_true(busiest(&search) == start);
    release(&search);
}

TEST_MAIN(cmocka_unit_test(best_way_is_found_from_any_start),
          cmocka_unit_test(more_than_two_nodes_are_shared_out),
          cmocka_unit_test(too_many_ways_keep_the_start))
