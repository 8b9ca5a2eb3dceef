/* SPDX-License-Identifier: MIT */
/* Half a sum is no sum (sgl-project/sglang#5524): which ranks a source has. */
#include "format/one_model.h"

#include "support.h"

static eplb_hooks default_hooks(void)
{
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    return hooks;
}

/* Adds files called "f<rank>", as far as that goes, and checks. */
static eplb_status check_ranks(const int32_t *list, int count, eplb_error *error)
{
    static const char *const names[] = {"f0", "f1", "f2", "f3", "f4"};
    test_memory memory = {0};
    eplb_hooks hooks = test_hooks(&memory);
    eplb_ranks ranks = {0};
    eplb_status status = EPLB_OK;
    for (int i = 0; i < count && status == EPLB_OK; i++) {
        status = eplb_ranks_add(&ranks, &hooks, list[i] < 0 ? "silent" : names[list[i] % 5],
                                list[i], error);
    }
    if (status == EPLB_OK) {
        status = eplb_ranks_check(&ranks, error);
    }
    eplb_ranks_clear(&ranks, &hooks);
    assert_int_equal(memory.live, 0);
    return status;
}

static void all_ranks_in_any_order_are_whole(void **state)
{
    (void)state;
    eplb_error error;
    assert_ok(check_ranks((int32_t[]){2, 0, 3, 1}, 4, &error), &error);
    assert_ok(check_ranks((int32_t[]){0}, 1, &error), &error);
    assert_ok(check_ranks((int32_t[]){-1, -1, -1}, 3, &error), &error);
    assert_ok(check_ranks(NULL, 0, &error), &error);
}

static void missing_ranks_are_named(void **state)
{
    (void)state;
    eplb_error error;
    assert_status(check_ranks((int32_t[]){3, 1}, 2, &error), EPLB_ERROR_DATA, &error);
    assert_string_equal(error.message,
                        "f3: 2 files with ranks up to 3, but none of ranks 0, 2: a part of the "
                        "ranks is no sum of all");
    assert_status(check_ranks((int32_t[]){1}, 1, &error), EPLB_ERROR_DATA, &error);
    assert_string_equal(error.message, "f1: 1 file with ranks up to 1, but none of rank 0: a part "
                                       "of the ranks is no sum of all");
    assert_status(check_ranks((int32_t[]){0, 64, 128}, 3, &error), EPLB_ERROR_DATA, &error);
    assert_contains(error.message, "f0: 3 files with ranks up to 128, but none of ranks 1, 2, 3, ");
    assert_contains(error.message, "...: a part of the ranks is no sum of all");
}

static void a_rank_twice_is_refused(void **state)
{
    (void)state;
    eplb_error error;
    assert_status(check_ranks((int32_t[]){0, 1, 1}, 3, &error), EPLB_ERROR_DATA, &error);
    assert_string_equal(error.message, "f1: counts of rank 1, as another file of the source: they "
                                       "would be added twice");
}

static void files_with_and_without_ranks_are_not_one_recording(void **state)
{
    (void)state;
    eplb_error error;
    assert_status(check_ranks((int32_t[]){0, -1}, 2, &error), EPLB_ERROR_DATA, &error);
    assert_string_equal(error.message, "silent: does not say of which rank its counts are, but f0 "
                                       "does: not of one recording");
}

static void a_rank_of_no_job_is_refused(void **state)
{
    (void)state;
    eplb_error error;
    assert_status(check_ranks((int32_t[]){1048575}, 1, &error), EPLB_ERROR_DATA, &error);
    assert_status(check_ranks((int32_t[]){1048576}, 1, &error), EPLB_ERROR_LIMIT, &error);
    assert_string_equal(error.message, "f1: rank 1048576 not below 1048576");
}

static eplb_status add_some(const eplb_hooks *hooks, void *context)
{
    (void)context;
    eplb_ranks ranks = {0};
    eplb_status status = eplb_ranks_add(&ranks, hooks, "f", 0, NULL);
    status = status == EPLB_OK ? eplb_ranks_add(&ranks, hooks, "f", 1000, NULL) : status;
    eplb_ranks_clear(&ranks, hooks);
    return status;
}

static void each_failing_allocation_is_survived(void **state)
{
    (void)state;
    test_each_failing_allocation(add_some, NULL);
}

static void names_with_numbers_are_told_apart(void **state)
{
    (void)state;
    int32_t number = -1;
    assert_true(eplb_listing_number("rank12.csv", "rank", ".csv", &number));
    assert_int_equal(number, 12);
    assert_true(eplb_listing_number("rank007.csv", "rank", ".csv", &number));
    assert_int_equal(number, 7);
    assert_true(eplb_listing_number("2147483647", "", "", &number));
    assert_int_equal(number, INT32_MAX);
    assert_true(eplb_listing_number("rank3.csv.gz", "rank", ".csv", &number));
    assert_int_equal(number, 3);
    assert_true(eplb_listing_number("rank4.csv.zst", "rank", ".csv", &number));
    assert_int_equal(number, 4);
    static const char *const others[] = {"rank.csv",
                                         "rank-1.csv",
                                         "rank1_raw.csv",
                                         "rank1",
                                         "Rank1.csv",
                                         "rank 1.csv",
                                         "rank1.csv.xz",
                                         "rank1a.csv",
                                         "rank1.gz",
                                         "rank1.csvgz",
                                         "rank1.csv.gz.bak",
                                         "rank+1.csv",
                                         "",
                                         "rank2147483648.csv",
                                         "rank99999999999999999999999.csv"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(eplb_listing_number(others[i], "rank", ".csv", &number));
    }
}

static void a_directory_is_listed_in_the_order_of_numbers(void **state)
{
    static const char *const names[] = {"a", "f1", "f1b", "f2", "f10", "f010", "f100", "g"};
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    for (int i = COUNT - 1; i >= 0; i--) {
        test_write_text(test_join(*state, names[i]).text, "");
    }
    test_write_text(test_join(*state, ".hidden").text, "");
    eplb_hooks hooks = default_hooks();
    eplb_listing listing;
    eplb_error error;
    assert_ok(eplb_listing_read(&listing, &hooks, *state, &error), &error);
    static const char *const expected[] = {"a", "f1", "f1b", "f2", "f010", "f10", "f100", "g"};
    assert_int_equal(listing.count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_string_equal(listing.names[i], expected[i]);
    }
    char *path = eplb_listing_path(&listing, "f10");
    assert_string_equal(path, test_join(*state, "f10").text);
    free(path);
    eplb_listing_clear(&listing);
    assert_status(eplb_listing_read(&listing, &hooks, test_join(*state, "none").text, &error),
                  EPLB_ERROR_IO, &error);
    assert_contains(error.message, "none: cannot ");
}

static eplb_status list(const eplb_hooks *hooks, void *context)
{
    eplb_listing listing;
    eplb_status status = eplb_listing_read(&listing, hooks, context, NULL);
    if (status == EPLB_OK) {
        eplb_listing_clear(&listing);
    }
    return status;
}

static void listing_survives_each_failure(void **state)
{
    for (int i = 0; i < 20; i++) {
        char name[8];
        snprintf(name, sizeof(name), "f%d", i);
        test_write_text(test_join(*state, name).text, "");
    }
    test_each_failing_allocation(list, *state);
}

TEST_MAIN(cmocka_unit_test(all_ranks_in_any_order_are_whole),
          cmocka_unit_test(missing_ranks_are_named), cmocka_unit_test(a_rank_twice_is_refused),
          cmocka_unit_test(files_with_and_without_ranks_are_not_one_recording),
          cmocka_unit_test(a_rank_of_no_job_is_refused),
          cmocka_unit_test(each_failing_allocation_is_survived),
          cmocka_unit_test(names_with_numbers_are_told_apart),
          IN_DIRECTORY(a_directory_is_listed_in_the_order_of_numbers),
          IN_DIRECTORY(listing_survives_each_failure))
