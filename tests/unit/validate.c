/* SPDX-License-Identifier: MIT */
#include "model.h"

enum { LAYERS = 2, EXPERTS = 5, GPUS = 3, SLOTS = 6, MOST = 32 };

static const int32_t layer_ids[LAYERS] = {3, 8};
static const int32_t good_row[SLOTS] = {0, 1, 2, 3, 4, 0};

/* Two good layers on 3 GPUs of 2 slots. */
static eplb_placement *make_good_placement(void)
{
    eplb_placement *placement =
        make_placement(make_cluster(GPUS, SLOTS / GPUS, 0), LAYERS, EXPERTS);
    assert_ok(eplb_placement_set_layer_ids(placement, layer_ids, 0, NULL), NULL);
    set_row(placement, 0, good_row);
    set_row(placement, 1, good_row);
    return placement;
}

typedef struct violations {
    int64_t count;
    int64_t stop_after;
    eplb_violation seen[MOST];
} violations;

static int collect(void *context, const eplb_violation *violation)
{
    violations *list = context;
    assert_true(list->count < MOST);
    list->seen[list->count++] = *violation;
    return list->count == list->stop_after;
}

static void assert_violations(const eplb_placement *placement, uint32_t flags,
                              const eplb_violation *expected, int64_t count)
{
    violations list = {0};
    int64_t counted = -1;
    eplb_error error;
    assert_ok(eplb_placement_check(placement, flags, collect, &list, &counted, &error), &error);
    assert_int_equal(list.count, count);
    assert_int_equal(counted, count);
    for (int64_t i = 0; i < count; i++) {
        assert_memory_equal(&list.seen[i], &expected[i], sizeof(expected[i]));
    }
    assert_int_equal(eplb_placement_validate(placement, flags, NULL),
                     count == 0 ? EPLB_OK : EPLB_ERROR_DATA);
}

static void good_placement_has_no_violation(void **state)
{
    (void)state;
    eplb_placement *placement = make_good_placement();
    assert_violations(placement, 0, NULL, 0);
    assert_violations(placement, EPLB_VALIDATE_ALLOW_EMPTY, NULL, 0);
    eplb_placement_destroy(&placement);
}

static void second_copies_may_be_allowed(void **state)
{
    (void)state;
    eplb_placement *placement = make_good_placement();
    int32_t row[64];
    int32_t slots = eplb_placement_slots(placement);
    memcpy(row, eplb_placement_row(placement, 0), (size_t)slots * sizeof(*row));
    row[1] = row[0];
    assert_ok(eplb_placement_set_row(placement, 0, row, NULL), NULL);
    eplb_error error;
    assert_status(eplb_placement_validate(placement, 0, &error), EPLB_ERROR_DATA, &error);
    int64_t duplicates;
    int64_t others;
    assert_ok(eplb_placement_check(placement, 0, NULL, NULL, &duplicates, NULL), NULL);
    assert_ok(
        eplb_placement_check(placement, EPLB_VALIDATE_ALLOW_DUPLICATES, NULL, NULL, &others, NULL),
        NULL);
    assert_int_equal(duplicates - others, 1);
    eplb_placement_destroy(&placement);
}

static void missing_expert_is_found(void **state)
{
    (void)state;
    eplb_placement *placement = make_good_placement();
    set_row(placement, 1, (int32_t[]){0, 1, 2, 3, 1, 0});
    const eplb_violation expected[] = {{EPLB_VIOLATION_MISSING_EXPERT, 1, -1, -1, 4}};
    assert_violations(placement, 0, expected, 1);
    eplb_error error;
    assert_status(eplb_placement_validate(placement, 0, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "layer 8");
    assert_contains(error.message, "expert 4");
    eplb_placement_destroy(&placement);
}

/* vllm-project/vllm#18343: the slot is wasted, and weights are wrong after a move. */
static void second_copy_on_a_gpu_is_found(void **state)
{
    (void)state;
    eplb_placement *placement = make_placement(make_cluster(GPUS, 3, 0), 1, EXPERTS);
    set_row(placement, 0, (int32_t[]){0, 1, 0, 2, 3, 4, 1, 1, 1});
    const eplb_violation expected[] = {{EPLB_VIOLATION_DUPLICATE, 0, 0, 2, 0},
                                       {EPLB_VIOLATION_DUPLICATE, 0, 2, 7, 1},
                                       {EPLB_VIOLATION_DUPLICATE, 0, 2, 8, 1}};
    assert_violations(placement, 0, expected, 3);
    eplb_error error;
    assert_status(eplb_placement_validate(placement, 0, &error), EPLB_ERROR_DATA, &error);
    assert_string_equal(error.message, "layer 0: expert 0 twice on GPU 0 (slot 2)");
    eplb_placement_destroy(&placement);
}

static void copies_on_neighbouring_gpus_are_fine(void **state)
{
    (void)state;
    eplb_placement *placement = make_good_placement();
    set_row(placement, 0, (int32_t[]){1, 0, 0, 2, 3, 4});
    assert_violations(placement, 0, NULL, 0);
    eplb_placement_destroy(&placement);
}

static void empty_slot_is_found_unless_allowed(void **state)
{
    (void)state;
    eplb_placement *placement = make_good_placement();
    set_row(placement, 0, (int32_t[]){-1, 1, 2, 3, 4, 0});
    const eplb_violation expected[] = {{EPLB_VIOLATION_EMPTY_SLOT, 0, 0, 0, -1}};
    assert_violations(placement, 0, expected, 1);
    assert_violations(placement, EPLB_VALIDATE_ALLOW_EMPTY, NULL, 0);
    eplb_placement_destroy(&placement);
}

static void replica_on_a_dead_gpu_is_found_and_serves_nobody(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(GPUS, SLOTS / GPUS, 0);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, NULL), NULL);
    eplb_placement *placement = make_placement(cluster, LAYERS, 4);
    set_row(placement, 0, (int32_t[]){0, 1, -1, -1, 2, 3});
    set_row(placement, 1, (int32_t[]){0, 1, 2, 2, 0, 3});
    const eplb_violation expected[] = {{EPLB_VIOLATION_DEAD_GPU, 1, 1, 2, 2},
                                       {EPLB_VIOLATION_DEAD_GPU, 1, 1, 3, 2},
                                       {EPLB_VIOLATION_MISSING_EXPERT, 1, -1, -1, 2}};
    assert_violations(placement, 0, expected, 3);
    eplb_placement_destroy(&placement);
}

static void uneven_slots_decide_which_gpu_a_slot_is_on(void **state)
{
    (void)state;
    static const int32_t row[SLOTS] = {0, 1, 2, 0, 3, 4};
    eplb_placement *even = make_good_placement();
    set_row(even, 0, row);
    assert_violations(even, 0, NULL, 0);
    eplb_placement_destroy(&even);
    eplb_cluster *cluster = make_cluster(GPUS, 1, 0);
    assert_ok(eplb_cluster_set_slots(cluster, 0, 4, NULL), NULL);
    eplb_placement *uneven = make_placement(cluster, 1, EXPERTS);
    set_row(uneven, 0, row);
    const eplb_violation expected[] = {{EPLB_VIOLATION_DUPLICATE, 0, 0, 3, 0}};
    assert_violations(uneven, 0, expected, 1);
    eplb_placement_destroy(&uneven);
}

static void violations_come_by_layer_then_slot_then_expert(void **state)
{
    (void)state;
    eplb_placement *placement = make_good_placement();
    set_row(placement, 0, (int32_t[]){3, 3, 2, -1, 2, 2});
    set_row(placement, 1, (int32_t[]){-1, -1, -1, -1, -1, -1});
    const eplb_violation expected[] = {
        {EPLB_VIOLATION_DUPLICATE, 0, 0, 1, 3},
        {EPLB_VIOLATION_EMPTY_SLOT, 0, 1, 3, -1},
        {EPLB_VIOLATION_DUPLICATE, 0, 2, 5, 2},
        {EPLB_VIOLATION_MISSING_EXPERT, 0, -1, -1, 0},
        {EPLB_VIOLATION_MISSING_EXPERT, 0, -1, -1, 1},
        {EPLB_VIOLATION_MISSING_EXPERT, 0, -1, -1, 4},
        {EPLB_VIOLATION_EMPTY_SLOT, 1, 0, 0, -1},
        {EPLB_VIOLATION_EMPTY_SLOT, 1, 0, 1, -1},
        {EPLB_VIOLATION_EMPTY_SLOT, 1, 1, 2, -1},
        {EPLB_VIOLATION_EMPTY_SLOT, 1, 1, 3, -1},
        {EPLB_VIOLATION_EMPTY_SLOT, 1, 2, 4, -1},
        {EPLB_VIOLATION_EMPTY_SLOT, 1, 2, 5, -1},
        {EPLB_VIOLATION_MISSING_EXPERT, 1, -1, -1, 0},
        {EPLB_VIOLATION_MISSING_EXPERT, 1, -1, -1, 1},
        {EPLB_VIOLATION_MISSING_EXPERT, 1, -1, -1, 2},
        {EPLB_VIOLATION_MISSING_EXPERT, 1, -1, -1, 3},
        {EPLB_VIOLATION_MISSING_EXPERT, 1, -1, -1, 4},
    };
    assert_violations(placement, 0, expected, sizeof(expected) / sizeof(expected[0]));
    eplb_placement_destroy(&placement);
}

static void visitor_can_stop_anywhere(void **state)
{
    (void)state;
    eplb_placement *placement = make_good_placement();
    set_row(placement, 0, (int32_t[]){3, 3, 2, -1, 2, 2});
    set_row(placement, 1, (int32_t[]){-1, -1, -1, -1, -1, -1});
    for (int64_t stop = 1; stop <= 17; stop++) {
        violations list = {.stop_after = stop};
        int64_t counted = -1;
        assert_ok(eplb_placement_check(placement, 0, collect, &list, &counted, NULL), NULL);
        assert_int_equal(list.count, stop);
        assert_int_equal(counted, stop);
    }
    eplb_placement_destroy(&placement);
}

static void violations_can_be_counted_without_a_visitor(void **state)
{
    (void)state;
    eplb_placement *placement = make_good_placement();
    set_row(placement, 0, (int32_t[]){3, 3, 2, -1, 2, 2});
    int64_t counted = -1;
    assert_ok(eplb_placement_check(placement, 0, NULL, NULL, &counted, NULL), NULL);
    assert_int_equal(counted, 6);
    assert_ok(eplb_placement_check(placement, 0, NULL, NULL, NULL, NULL), NULL);
    eplb_placement_destroy(&placement);
}

static void nothing_to_check_is_refused(void **state)
{
    (void)state;
    eplb_error error;
    assert_status(eplb_placement_check(NULL, 0, NULL, NULL, NULL, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_placement_validate(NULL, 0, &error), EPLB_ERROR_ARGUMENT, &error);
}

static void each_violation_has_words_with_its_numbers(void **state)
{
    (void)state;
    eplb_placement *placement = make_good_placement();
    char text[96];
    eplb_violation missing = {EPLB_VIOLATION_MISSING_EXPERT, 1, -1, -1, 4};
    eplb_violation duplicate = {EPLB_VIOLATION_DUPLICATE, 0, 2, 5, 1};
    eplb_violation empty = {EPLB_VIOLATION_EMPTY_SLOT, 1, 2, 4, -1};
    eplb_violation dead = {EPLB_VIOLATION_DEAD_GPU, 0, 1, 3, 2};
    assert_string_equal(eplb_violation_text(placement, &missing, text, sizeof(text)),
                        "layer 8: expert 4 has no replica");
    assert_string_equal(eplb_violation_text(placement, &duplicate, text, sizeof(text)),
                        "layer 3: expert 1 twice on GPU 2 (slot 5)");
    assert_string_equal(eplb_violation_text(placement, &empty, text, sizeof(text)),
                        "layer 8: slot 4 of GPU 2 is empty");
    assert_string_equal(eplb_violation_text(placement, &dead, text, sizeof(text)),
                        "layer 3: expert 2 on dead GPU 1 (slot 3)");
    assert_ptr_equal(eplb_violation_text(placement, &dead, text, 8), text);
    assert_string_equal(text, "layer 3");
    eplb_placement_destroy(&placement);
}

static eplb_status check_all(const eplb_hooks *hooks, void *cluster)
{
    eplb_placement *placement = NULL;
    eplb_status status = eplb_placement_create(&placement, hooks, cluster, 1, EXPERTS, NULL);
    if (status == EPLB_OK) {
        status = eplb_placement_spread(placement, 0, NULL);
    }
    if (status == EPLB_OK) {
        status = eplb_placement_validate(placement, 0, NULL);
    }
    eplb_placement_destroy(&placement);
    return status;
}

static void failing_allocation_leaks_nothing(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(GPUS, SLOTS / GPUS, 0);
    test_each_failing_allocation(check_all, cluster);
    eplb_cluster_destroy(&cluster);
}

static void unknown_violation_has_words_too(void **state)
{
    (void)state;
    eplb_placement *placement = make_placement(make_cluster(2, 2, 0), 1, 4);
    const eplb_violation odd = {.kind = 77, .layer = 5};
    char text[64];
    assert_string_equal(eplb_violation_text(placement, &odd, text, sizeof(text)),
                        "layer 5: unknown violation 77");
    eplb_placement_destroy(&placement);
}

TEST_MAIN(cmocka_unit_test(unknown_violation_has_words_too),
          cmocka_unit_test(good_placement_has_no_violation),
          cmocka_unit_test(second_copies_may_be_allowed), cmocka_unit_test(missing_expert_is_found),
          cmocka_unit_test(second_copy_on_a_gpu_is_found),
          cmocka_unit_test(copies_on_neighbouring_gpus_are_fine),
          cmocka_unit_test(empty_slot_is_found_unless_allowed),
          cmocka_unit_test(replica_on_a_dead_gpu_is_found_and_serves_nobody),
          cmocka_unit_test(uneven_slots_decide_which_gpu_a_slot_is_on),
          cmocka_unit_test(violations_come_by_layer_then_slot_then_expert),
          cmocka_unit_test(visitor_can_stop_anywhere),
          cmocka_unit_test(violations_can_be_counted_without_a_visitor),
          cmocka_unit_test(nothing_to_check_is_refused),
          cmocka_unit_test(each_violation_has_words_with_its_numbers),
          cmocka_unit_test(failing_allocation_leaks_nothing))
