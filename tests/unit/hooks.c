/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <eplb/cluster.h>
#include <eplb/hooks.h>

#include "model.h"

static void defaults_allocate_and_stay_silent(void **state)
{
    (void)state;
    eplb_hooks hooks;
    memset(&hooks, 0xff, sizeof(hooks));
    eplb_hooks_init(&hooks);
    assert_int_equal(hooks.struct_size, sizeof(hooks));
    assert_null(hooks.log);
    char *block = hooks.allocate(hooks.memory_context, 3);
    assert_non_null(block);
    memcpy(block, "ab", 3);
    block = hooks.reallocate(hooks.memory_context, block, 3000);
    assert_non_null(block);
    assert_string_equal(block, "ab");
    hooks.release(hooks.memory_context, block);
}

static void initialising_nothing_does_nothing(void **state)
{
    (void)state;
    eplb_hooks_init(NULL);
}

static void objects_take_memory_from_the_hooks_only(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_cluster *cluster = NULL;
    assert_ok(eplb_cluster_create(&cluster, &hooks, 3, 2, 0, NULL), NULL);
    assert_true(memory.live > 0);
    eplb_cluster_destroy(&cluster);
    assert_int_equal(memory.live, 0);
}

static void hooks_are_copied_into_the_object(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_cluster *cluster = NULL;
    assert_ok(eplb_cluster_create(&cluster, &hooks, 3, 2, 0, NULL), NULL);
    memset(&hooks, 0, sizeof(hooks));
    eplb_cluster_destroy(&cluster);
    assert_int_equal(memory.live, 0);
}

/* An object that was made from another one must outlive it. */
static void object_made_from_others_uses_its_own_hooks(void **state)
{
    (void)state;
    test_memory first = {0};
    test_memory second = {0};
    eplb_hooks first_hooks = test_hooks(&first);
    eplb_hooks second_hooks = test_hooks(&second);
    eplb_cluster *cluster = NULL;
    assert_ok(eplb_cluster_create(&cluster, &first_hooks, 3, 2, 0, NULL), NULL);
    int64_t requests = first.requests;
    eplb_placement *placement = NULL;
    assert_ok(eplb_placement_create(&placement, &second_hooks, cluster, 4, 5, NULL), NULL);
    assert_int_equal(first.requests, requests);
    eplb_cluster_destroy(&cluster);
    assert_int_equal(first.live, 0);
    assert_ok(eplb_placement_spread(placement, 3, NULL), NULL);
    eplb_placement_destroy(&placement);
    assert_int_equal(second.live, 0);
}

static void shorter_struct_of_an_older_caller_is_honoured(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    hooks.struct_size = offsetof(eplb_hooks, log);
    eplb_cluster *cluster = NULL;
    assert_ok(eplb_cluster_create(&cluster, &hooks, 3, 2, 0, NULL), NULL);
    assert_true(memory.live > 0);
    eplb_cluster_destroy(&cluster);
    assert_int_equal(memory.live, 0);
}

static void struct_that_is_too_short_for_memory_gets_the_defaults(void **state)
{
    (void)state;
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    hooks.struct_size = sizeof(hooks.struct_size);
    eplb_cluster *cluster = NULL;
    assert_ok(eplb_cluster_create(&cluster, &hooks, 3, 2, 0, NULL), NULL);
    eplb_cluster_destroy(&cluster);
    assert_int_equal(memory.requests, 0);
}

static void longer_struct_of_a_newer_caller_is_honoured(void **state)
{
    (void)state;
    struct {
        eplb_hooks hooks;
        void *later[4];
    } newer;
    memset(&newer, 0xff, sizeof(newer));
    test_memory memory = {0};
    newer.hooks = test_hooks(&memory);
    newer.hooks.struct_size = sizeof(newer);
    eplb_cluster *cluster = NULL;
    assert_ok(eplb_cluster_create(&cluster, &newer.hooks, 3, 2, 0, NULL), NULL);
    assert_true(memory.live > 0);
    eplb_cluster_destroy(&cluster);
    assert_int_equal(memory.live, 0);
}

TEST_MAIN(cmocka_unit_test(defaults_allocate_and_stay_silent),
          cmocka_unit_test(initialising_nothing_does_nothing),
          cmocka_unit_test(objects_take_memory_from_the_hooks_only),
          cmocka_unit_test(hooks_are_copied_into_the_object),
          cmocka_unit_test(object_made_from_others_uses_its_own_hooks),
          cmocka_unit_test(shorter_struct_of_an_older_caller_is_honoured),
          cmocka_unit_test(struct_that_is_too_short_for_memory_gets_the_defaults),
          cmocka_unit_test(longer_struct_of_a_newer_caller_is_honoured))
