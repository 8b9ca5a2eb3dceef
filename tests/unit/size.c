/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "base/size.h"

static void products_that_fit_are_exact(void **state)
{
    (void)state;
    size_t result = 1;
    assert_true(eplb_size_mul(0, SIZE_MAX, &result));
    assert_true(result == 0);
    assert_true(eplb_size_mul(SIZE_MAX, 1, &result));
    assert_true(result == SIZE_MAX);
    assert_true(eplb_size_mul(SIZE_MAX / 5, 5, &result));
    assert_true(result == SIZE_MAX / 5 * 5);
}

static void products_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    size_t result;
    assert_false(eplb_size_mul(SIZE_MAX, 2, &result));
    assert_false(eplb_size_mul(SIZE_MAX / 5 + 1, 5, &result));
    assert_false(eplb_size_mul((size_t)1 << 32, (size_t)1 << 32, &result));
}

static void sums_that_fit_are_exact(void **state)
{
    (void)state;
    size_t result = 1;
    assert_true(eplb_size_add(0, 0, &result));
    assert_true(result == 0);
    assert_true(eplb_size_add(SIZE_MAX - 3, 3, &result));
    assert_true(result == SIZE_MAX);
}

static void sums_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    size_t result;
    assert_false(eplb_size_add(SIZE_MAX - 3, 4, &result));
    assert_false(eplb_size_add(SIZE_MAX, SIZE_MAX, &result));
}

TEST_MAIN(cmocka_unit_test(products_that_fit_are_exact),
          cmocka_unit_test(products_that_do_not_fit_are_refused),
          cmocka_unit_test(sums_that_fit_are_exact),
          cmocka_unit_test(sums_that_do_not_fit_are_refused))
