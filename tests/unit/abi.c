/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "base/abi.h"

typedef struct options {
    uint32_t struct_size;
    int32_t old;
    int32_t added;
} options;

static void short_struct_gets_defaults_for_the_rest(void **state)
{
    (void)state;
    options own = {.struct_size = sizeof(own), .old = 1, .added = 2};
    options given = {.struct_size = offsetof(options, added), .old = 10, .added = 20};
    assert_true(eplb_struct_in(&own, sizeof(own), &given));
    assert_int_equal(own.struct_size, sizeof(own));
    assert_int_equal(own.old, 10);
    assert_int_equal(own.added, 2);
}

static void long_struct_is_taken_as_far_as_it_is_known(void **state)
{
    (void)state;
    options own[2] = {{.struct_size = sizeof(options), .old = 1, .added = 2}, {.old = 3}};
    options given[2] = {{.struct_size = sizeof(given), .old = 10, .added = 20}, {.old = 30}};
    assert_true(eplb_struct_in(&own[0], sizeof(own[0]), given));
    assert_int_equal(own[0].struct_size, sizeof(options));
    assert_int_equal(own[0].old, 10);
    assert_int_equal(own[0].added, 20);
    assert_int_equal(own[1].old, 3);
}

static void results_are_cut_to_the_callers_struct(void **state)
{
    (void)state;
    const options own = {.struct_size = sizeof(own), .old = 1, .added = 2};
    options given = {.struct_size = offsetof(options, added), .old = 10, .added = 20};
    eplb_struct_out(&given, &own, sizeof(own));
    assert_int_equal(given.struct_size, offsetof(options, added));
    assert_int_equal(given.old, 1);
    assert_int_equal(given.added, 20);
}

static void rest_of_a_longer_struct_is_zero(void **state)
{
    (void)state;
    const options own = {.struct_size = sizeof(own), .old = 1, .added = 2};
    options given[2] = {{.struct_size = sizeof(given), .old = 10, .added = 20}, {.old = 30}};
    eplb_struct_out(given, &own, sizeof(own));
    assert_int_equal(given[0].struct_size, sizeof(given));
    assert_int_equal(given[0].old, 1);
    assert_int_equal(given[0].added, 2);
    assert_int_equal(given[1].old, 0);
}

static void struct_size_that_was_never_set_is_refused(void **state)
{
    (void)state;
    options own = {.struct_size = sizeof(own), .old = 1, .added = 2};
    const options given = {.struct_size = 0, .old = 10, .added = 20};
    assert_false(eplb_struct_in(&own, sizeof(own), &given));
    assert_int_equal(own.old, 1);
    assert_int_equal(own.struct_size, sizeof(own));
}

TEST_MAIN(cmocka_unit_test(struct_size_that_was_never_set_is_refused),
          cmocka_unit_test(short_struct_gets_defaults_for_the_rest),
          cmocka_unit_test(long_struct_is_taken_as_far_as_it_is_known),
          cmocka_unit_test(results_are_cut_to_the_callers_struct),
          cmocka_unit_test(rest_of_a_longer_struct_is_zero))
