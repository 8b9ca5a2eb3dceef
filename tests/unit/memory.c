/* SPDX-License-Identifier: MIT */
#include "support.h"

#include "base/memory.h"

static void size_that_overflows_never_reaches_the_hooks(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    assert_null(eplb_alloc(&hooks, SIZE_MAX / 4, 8));
    assert_null(eplb_alloc_zeroed(&hooks, SIZE_MAX / 4, 8));
    assert_null(eplb_realloc(&hooks, NULL, SIZE_MAX / 4, 8));
    assert_int_equal(memory.requests, 0);
}

/* The hooks themselves assert that they are never asked for 0 bytes. */
static void nothing_is_still_a_block(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    void *block = eplb_alloc(&hooks, 0, 8);
    assert_non_null(block);
    block = eplb_realloc(&hooks, block, 5, 0);
    assert_non_null(block);
    eplb_free(&hooks, block);
    assert_int_equal(memory.requests, 2);
    assert_int_equal(memory.live, 0);
}

static void zeroed_memory_is_zero(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    unsigned char *block = eplb_alloc_zeroed(&hooks, 7, 9);
    assert_non_null(block);
    for (size_t i = 0; i < 63; i++) {
        assert_int_equal(block[i], 0);
    }
    eplb_free(&hooks, block);
}

static void growing_from_nothing_allocates(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    char *block = eplb_realloc(&hooks, NULL, 4, 1);
    assert_non_null(block);
    memcpy(block, "abc", 4);
    block = eplb_realloc(&hooks, block, 4000, 1);
    assert_non_null(block);
    assert_string_equal(block, "abc");
    eplb_free(&hooks, block);
    assert_int_equal(memory.live, 0);
}

static void block_that_cannot_grow_stays(void **state)
{
    (void)state;
    test_memory memory = {.fail_at = 2};
    eplb_hooks hooks = test_hooks(&memory);
    char *block = eplb_alloc(&hooks, 4, 1);
    assert_non_null(block);
    memcpy(block, "abc", 4);
    assert_null(eplb_realloc(&hooks, block, 4000, 1));
    assert_string_equal(block, "abc");
    eplb_free(&hooks, block);
    assert_int_equal(memory.live, 0);
}

static void freeing_nothing_calls_nothing(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_free(&hooks, NULL);
    assert_int_equal(memory.live, 0);
}

static void out_of_memory_has_its_status_and_words(void **state)
{
    (void)state;
    eplb_error error;
    assert_int_equal(eplb_out_of_memory(&error), EPLB_ERROR_NOMEM);
    assert_int_equal(error.status, EPLB_ERROR_NOMEM);
    assert_string_equal(error.message, "out of memory");
    assert_int_equal(eplb_out_of_memory(NULL), EPLB_ERROR_NOMEM);
}

TEST_MAIN(cmocka_unit_test(size_that_overflows_never_reaches_the_hooks),
          cmocka_unit_test(nothing_is_still_a_block), cmocka_unit_test(zeroed_memory_is_zero),
          cmocka_unit_test(growing_from_nothing_allocates),
          cmocka_unit_test(block_that_cannot_grow_stays),
          cmocka_unit_test(freeing_nothing_calls_nothing),
          cmocka_unit_test(out_of_memory_has_its_status_and_words))
