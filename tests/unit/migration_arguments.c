/* SPDX-License-Identifier: MIT */
/* What eplb/migration.h refuses. */
#include "migration.h"

static const int32_t some_row[] = {0, 1};
static const rows some_rows = {2, 1, 0, 2, some_row, some_row};

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    static const struct {
        eplb_migration_options options;
        const char *part;
    } cases[] = {
        {{sizeof(eplb_migration_options), 2, -1, -1, -1, 1}, "mode 2 "},
        {{sizeof(eplb_migration_options), 0, 0, -1, -1, 1}, "max_sends 0 "},
        {{sizeof(eplb_migration_options), 0, -1, 0, -1, 1}, "max_receives 0 "},
        {{sizeof(eplb_migration_options), 0, -1, -1, -2, 1}, "max_copies -2 "},
        {{sizeof(eplb_migration_options), 0, -1, -1, -1, -2}, "buffer_slots -2 "},
        {{sizeof(eplb_migration_options), 1, -1, -1, -1, 0}, "buffer_slots 0 "},
        {{0, 0, -1, -1, -1, 1}, "struct_size"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        eplb_error error;
        eplb_migration *migration = NULL;
        assert_status(try_migration(&migration, &some_rows, &cases[i].options, &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_contains(error.message, cases[i].part);
    }
}

/* Tries to go from one placement to another; both are destroyed. */
static void assert_refused(eplb_placement *from, eplb_placement *to, eplb_status status,
                           const char *part)
{
    eplb_error error;
    eplb_migration *migration = (eplb_migration *)&error;
    assert_status(eplb_migration_create(&migration, NULL, from, to, NULL, &error), status, &error);
    assert_null(migration);
    assert_contains(error.message, part);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
}

static eplb_placement *some_placement(void)
{
    return placement_of(&some_rows, some_row);
}

static void placements_that_do_not_match_are_refused(void **state)
{
    (void)state;
    assert_refused(some_placement(), make_placement(make_cluster(3, 1, 0), 1, 2),
                   EPLB_ERROR_ARGUMENT, "2 GPUs to 1 layers of 2 experts on 3 GPUs");
    assert_refused(some_placement(), make_placement(make_cluster(2, 1, 0), 2, 2),
                   EPLB_ERROR_ARGUMENT, "to 2 layers");
    assert_refused(make_placement(make_cluster(2, 1, 0), 1, 3), some_placement(),
                   EPLB_ERROR_ARGUMENT, "from 1 layers of 3 experts");
    assert_refused(NULL, some_placement(), EPLB_ERROR_ARGUMENT, "no old placement");
    assert_refused(some_placement(), NULL, EPLB_ERROR_ARGUMENT, "no new placement");
}

static void layers_with_other_ids_are_refused(void **state)
{
    (void)state;
    eplb_placement *to = some_placement();
    assert_ok(eplb_placement_set_layer_ids(to, (const int32_t[]){3}, 0, NULL), NULL);
    assert_refused(some_placement(), to, EPLB_ERROR_ARGUMENT, "index 0 is 0 in the old");
}

static void other_draft_layers_are_refused(void **state)
{
    (void)state;
    eplb_placement *from = make_placement(make_cluster(2, 1, 0), 2, 2);
    eplb_placement *to = make_placement(make_cluster(2, 1, 0), 2, 2);
    assert_ok(eplb_placement_set_draft_layers(to, 1, NULL), NULL);
    assert_refused(from, to, EPLB_ERROR_ARGUMENT,
                   "the draft model has 0 of the layers in the old placement, 1 in the new");
}

static void new_placement_that_lacks_an_expert_is_refused(void **state)
{
    (void)state;
    static const int32_t row[] = {0, 0};
    assert_refused(some_placement(), placement_of(&some_rows, row), EPLB_ERROR_DATA,
                   "layer 0: expert 1 has no replica");
}

static void new_placement_with_an_expert_on_a_dead_gpu_is_refused(void **state)
{
    (void)state;
    eplb_cluster *cluster = make_cluster(2, 1, 0);
    assert_ok(eplb_cluster_set_alive(cluster, 1, 0, NULL), NULL);
    eplb_placement *to = make_placement(cluster, 1, 2);
    set_row(to, 0, some_row);
    assert_refused(some_placement(), to, EPLB_ERROR_DATA, "expert 1 on dead GPU 1");
}

static void missing_output_is_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_placement *placement = some_placement();
    assert_status(eplb_migration_create(NULL, NULL, placement, placement, NULL, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    eplb_placement_destroy(&placement);
}

static void indices_out_of_range_are_refused(void **state)
{
    (void)state;
    eplb_error error;
    int64_t first;
    int64_t count;
    eplb_round round = {.struct_size = sizeof(round)};
    eplb_migration *migration = migration_of(&some_rows, NULL);
    assert_status(eplb_migration_get_round(migration, 0, &round, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_status(eplb_migration_layer_rounds(migration, 1, &first, &count, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_null(eplb_migration_start_map(migration, 1));
    assert_null(eplb_migration_start_map(migration, -1));
    eplb_migration_destroy(&migration);
}

static void results_without_struct_size_are_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_migration_info info = {0};
    eplb_migration *migration = migration_of(&some_rows, NULL);
    assert_status(eplb_migration_get_info(migration, &info, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_migration_get_info(migration, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_migration_destroy(&migration);
}

static void shorter_info_of_an_older_caller_is_not_overrun(void **state)
{
    (void)state;
    struct {
        uint32_t struct_size;
        int32_t buffer_slots;
        int64_t behind;
    } info = {.struct_size = 8, .behind = 77};
    eplb_migration *migration = migration_of(&some_rows, NULL);
    assert_ok(eplb_migration_get_info(migration, (eplb_migration_info *)&info, NULL), NULL);
    assert_int_equal(info.behind, 77);
    eplb_migration_destroy(&migration);
}

static void sources_have_names(void **state)
{
    (void)state;
    assert_string_equal(eplb_copy_source_name(EPLB_COPY_LOCAL), "local");
    assert_string_equal(eplb_copy_source_name(EPLB_COPY_NODE), "node");
    assert_string_equal(eplb_copy_source_name(EPLB_COPY_REMOTE), "remote");
    assert_string_equal(eplb_copy_source_name(EPLB_COPY_STORAGE), "storage");
    assert_string_equal(eplb_copy_source_name((eplb_copy_source)9), "unknown");
}

/* A circle through a spare slot, an expert that is lost, and one that moves freely. */
static eplb_status create_and_check(const eplb_hooks *hooks, void *context)
{
    static const int32_t old_row[] = {0, 1, 2, 2, 3, -1, 5, -1};
    static const int32_t new_row[] = {1, 0, 2, 2, 3, 4, 3, 5};
    const eplb_migration_options *options = context;
    rows what = {8, 1, 0, 6, old_row, new_row};
    eplb_placement *from = placement_of(&what, old_row);
    eplb_placement *to = placement_of(&what, new_row);
    eplb_migration *migration;
    eplb_status status = eplb_migration_create(&migration, hooks, from, to, options, NULL);
    if (status == EPLB_OK) {
        status = eplb_migration_check(migration, from, to, NULL);
    }
    eplb_migration_destroy(&migration);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
    return status;
}

static void failed_allocations_leave_nothing_behind(void **state)
{
    (void)state;
    for (int32_t buffers = 0; buffers < 2; buffers++) {
        eplb_migration_options options = options_of(EPLB_MIGRATION_IN_PLACE, buffers);
        test_each_failing_allocation(create_and_check, &options);
    }
    eplb_migration_options options = options_of(EPLB_MIGRATION_STAGED, 1);
    options.max_copies = 1;
    test_each_failing_allocation(create_and_check, &options);
}

TEST_MAIN(cmocka_unit_test(options_out_of_range_are_refused),
          cmocka_unit_test(placements_that_do_not_match_are_refused),
          cmocka_unit_test(layers_with_other_ids_are_refused),
          cmocka_unit_test(other_draft_layers_are_refused),
          cmocka_unit_test(new_placement_that_lacks_an_expert_is_refused),
          cmocka_unit_test(new_placement_with_an_expert_on_a_dead_gpu_is_refused),
          cmocka_unit_test(missing_output_is_refused),
          cmocka_unit_test(indices_out_of_range_are_refused),
          cmocka_unit_test(results_without_struct_size_are_refused),
          cmocka_unit_test(shorter_info_of_an_older_caller_is_not_overrun),
          cmocka_unit_test(sources_have_names),
          cmocka_unit_test(failed_allocations_leave_nothing_behind))
