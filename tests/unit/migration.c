/* SPDX-License-Identifier: MIT */
#include "migration.h"

#define ROW(...) ((const int32_t[]){__VA_ARGS__})

static void same_placement_needs_no_round(void **state)
{
    (void)state;
    rows what = {2, 2, 0, 3, ROW(0, 1, 2, 0), ROW(0, 1, 2, 0)};
    eplb_migration *migration = migration_of(&what, NULL);
    assert_int_equal(eplb_migration_rounds(migration), 0);
    assert_int_equal(info_of(migration).layers_changed, 0);
    assert_map(eplb_migration_start_map(migration, 0), 0, 1, 2, 0);
    eplb_migration_destroy(&migration);
    assert_null(migration);
}

static void slot_leaves_the_map_while_it_is_written(void **state)
{
    (void)state;
    rows what = {2, 2, 1, 3, ROW(0, 1, 2, 0), ROW(0, 1, 2, 1)};
    eplb_migration *migration = migration_of(&what, NULL);
    assert_int_equal(eplb_migration_rounds(migration), 1);
    eplb_round round = round_of(migration, 0);
    assert_map(round.map_during, 0, 1, 2, -1);
    assert_map(round.map_after, 0, 1, 2, 1);
    assert_int_equal(round.commit, 0);
    assert_int_equal(round.copy_count, 1);
    eplb_copy expected = {.layer = 0,
                          .expert = 1,
                          .gpu = 1,
                          .slot = 3,
                          .buffer = -1,
                          .source = EPLB_COPY_REMOTE,
                          .source_gpu = 0,
                          .source_slot = 1};
    assert_memory_equal(round.copies, &expected, sizeof(expected));
    eplb_migration_destroy(&migration);
}

static void expert_has_its_new_place_before_its_old_one_is_written(void **state)
{
    (void)state;
    rows what = {3, 1, 0, 2, ROW(0, 1, -1), ROW(1, -1, 0)};
    eplb_migration *migration = migration_of(&what, NULL);
    assert_int_equal(eplb_migration_rounds(migration), 2);
    assert_map(round_of(migration, 0).map_during, 0, 1, -1);
    assert_map(round_of(migration, 0).map_after, 0, 1, 0);
    assert_map(round_of(migration, 1).map_during, -1, 1, 0);
    assert_map(round_of(migration, 1).map_after, 1, -1, 0);
    eplb_migration_destroy(&migration);
}

static void circle_goes_through_the_buffer(void **state)
{
    (void)state;
    rows what = {2, 1, 0, 2, ROW(0, 1), ROW(1, 0)};
    eplb_migration *migration = migration_of(&what, NULL);
    assert_int_equal(eplb_migration_rounds(migration), 1);
    eplb_round round = round_of(migration, 0);
    assert_int_equal(round.commit, 1);
    assert_int_equal(round.copies[0].buffer, 0);
    assert_int_equal(round.copies[1].buffer, 0);
    assert_map(round.map_during, 0, 1);
    assert_map(round.map_after, 1, 0);
    assert_int_equal(info_of(migration).buffer_slots, 1);
    assert_int_equal(info_of(migration).extra_copies, 0);
    eplb_migration_destroy(&migration);
}

static void circle_fills_the_buffer_in_several_rounds(void **state)
{
    (void)state;
    rows what = {3, 1, 0, 3, ROW(0, 1, 2), ROW(1, 2, 0)};
    eplb_migration_options options = options_of(EPLB_MIGRATION_IN_PLACE, 1);
    options.max_copies = 2;
    eplb_migration *migration = migration_of(&what, &options);
    assert_int_equal(eplb_migration_rounds(migration), 2);
    assert_int_equal(round_of(migration, 0).commit, 0);
    assert_map(round_of(migration, 0).map_after, 0, 1, 2);
    assert_int_equal(round_of(migration, 1).commit, 1);
    assert_map(round_of(migration, 1).map_after, 1, 2, 0);
    eplb_migration_destroy(&migration);
}

static void circle_without_a_buffer_goes_through_an_empty_slot(void **state)
{
    (void)state;
    rows what = {3, 1, 0, 2, ROW(0, 1, -1), ROW(1, 0, -1)};
    eplb_migration_options options = options_of(EPLB_MIGRATION_IN_PLACE, 0);
    eplb_migration *migration = migration_of(&what, &options);
    assert_int_equal(eplb_migration_rounds(migration), 3);
    assert_map(round_of(migration, 0).map_after, 0, 1, 0);
    assert_map(round_of(migration, 2).map_after, 1, 0, -1);
    assert_int_equal(info_of(migration).extra_copies, 1);
    assert_int_equal(info_of(migration).buffer_slots, 0);
    eplb_migration_destroy(&migration);
}

static void lent_slot_is_restored(void **state)
{
    (void)state;
    rows what = {4, 1, 0, 3, ROW(2, 0, 1, 2), ROW(2, 1, 0, 2)};
    eplb_migration_options options = options_of(EPLB_MIGRATION_IN_PLACE, 0);
    eplb_migration *migration = migration_of(&what, &options);
    eplb_round last = round_of(migration, eplb_migration_rounds(migration) - 1);
    assert_map(last.map_after, 2, 1, 0, 2);
    assert_int_equal(last.copies[0].expert, 2);
    assert_int_equal(info_of(migration).extra_copies, 2);
    eplb_migration_destroy(&migration);
}

static void staged_circle_larger_than_the_buffer_goes_through_a_spare_slot(void **state)
{
    (void)state;
    rows what = {3, 2, 0, 5, ROW(0, 1, 2, 3, 4, -1), ROW(2, 3, 1, 0, 4, -1)};
    eplb_migration_options options = options_of(EPLB_MIGRATION_STAGED, 1);
    eplb_migration *migration = migration_of(&what, &options);
    assert_int_equal(info_of(migration).extra_copies, 1);
    assert_int_equal(info_of(migration).buffer_slots, 1);
    eplb_migration_destroy(&migration);
}

static void circle_without_buffer_and_spare_slot_is_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_migration *migration = NULL;
    rows what = {2, 1, 0, 2, ROW(0, 1), ROW(1, 0)};
    eplb_migration_options options = options_of(EPLB_MIGRATION_IN_PLACE, 0);
    assert_status(try_migration(&migration, &what, &options, &error), EPLB_ERROR_INFEASIBLE,
                  &error);
    assert_null(migration);
    assert_string_equal(error.message,
                        "layer 0: expert 1 for slot 0 of GPU 0: 2 slots wait for each other and "
                        "none is spare; 1 buffer slot on GPU 0 is enough for them, not 0");
}

/* Ways round have been taken before nothing is left to do. */
static void refusal_names_buffer_slots_that_are_enough(void **state)
{
    (void)state;
    eplb_error error;
    eplb_migration *migration = NULL;
    eplb_cluster *cluster = make_cluster(3, 6, 0);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 4, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(cluster, 2, 3, NULL), NULL);
    eplb_placement *from = make_placement(cluster, 1, 13);
    eplb_placement *to = NULL;
    set_row(from, 0, ROW(1, 7, 12, 10, 8, 3, 0, 9, 12, 11, 5, 2, 7));
    assert_ok(eplb_placement_clone(&to, NULL, from, &error), &error);
    set_row(to, 0, ROW(7, 12, 11, 0, 1, 10, 6, 3, 9, 2, 4, 5, 8));
    eplb_migration_options options = options_of(EPLB_MIGRATION_STAGED, 1);
    options.max_sends = 2;
    assert_status(eplb_migration_create(&migration, NULL, from, to, &options, &error),
                  EPLB_ERROR_INFEASIBLE, &error);
    assert_string_equal(error.message, "layer 0: slots wait for each other and none is spare; 6 "
                                       "buffer slots on GPU 0 are enough for all of them, not 1");
    options.buffer_slots = 6;
    assert_ok(eplb_migration_create(&migration, NULL, from, to, &options, &error), &error);
    eplb_migration_destroy(&migration);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
}

/* Experts 0 and 1 of GPU 0 change places, and so do 0, 1 and 2 of GPU 2. */
static void slots_of_a_gpu_change_places_through_one_buffer_slot(void **state)
{
    (void)state;
    rows what = {3, 3, 0, 4, ROW(0, 1, 3, 0, 1, 2, 0, 1, 2), ROW(1, 0, 3, 0, 1, 2, 1, 2, 0)};
    eplb_migration *migration = migration_of(&what, NULL);
    eplb_migration_info info = info_of(migration);
    assert_int_equal(info.local_copies, 5);
    assert_int_equal(info.node_copies, 0);
    assert_int_equal(info.extra_copies, 0);
    assert_int_equal(info.buffer_slots, 1);
    assert_int_equal(info.rounds, 3);
    assert_map(round_of(migration, 0).map_during, 0, 1, 3, 0, 1, 2, 0, 1, 2);
    assert_map(round_of(migration, 1).map_during, -1, 1, 3, 0, 1, 2, -1, 1, 2);
    assert_map(round_of(migration, 2).map_during, 1, -1, 3, 0, 1, 2, 1, -1, 2);
    assert_int_equal(round_of(migration, 1).commit, 0);
    assert_int_equal(round_of(migration, 2).commit, 1);
    eplb_migration_destroy(&migration);
}

/* Without a buffer slot one of the two has to come from elsewhere. */
static void slots_of_a_gpu_change_places_without_a_buffer(void **state)
{
    (void)state;
    rows what = {2, 2, 0, 2, ROW(0, 1, 0, 1), ROW(1, 0, 0, 1)};
    eplb_migration_options options = options_of(EPLB_MIGRATION_IN_PLACE, 0);
    eplb_migration *migration = migration_of(&what, &options);
    assert_int_equal(info_of(migration).local_copies, 1);
    assert_int_equal(info_of(migration).node_copies, 1);
    eplb_migration_destroy(&migration);
}

/* A ring that the buffer does not hold: slot 0 is overwritten before slot 2 has read it. */
static void what_can_be_done_only_by_overwriting_earlier_is_done(void **state)
{
    (void)state;
    eplb_error error;
    eplb_migration *migration = NULL;
    eplb_cluster *cluster = make_cluster(2, 3, 0);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 2, NULL), NULL);
    eplb_placement *from = make_placement(cluster, 1, 5);
    eplb_placement *to = NULL;
    set_row(from, 0, ROW(1, 4, 0, 1, 2));
    assert_ok(eplb_placement_clone(&to, NULL, from, &error), &error);
    set_row(to, 0, ROW(0, 3, 1, 4, 2));
    assert_ok(eplb_migration_create(&migration, NULL, from, to, NULL, &error), &error);
    assert_ok(eplb_migration_check(migration, from, to, &error), &error);
    eplb_migration_destroy(&migration);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
}

/* Slot 1 gets expert 2 from GPU 1, but not before slot 0 has read expert 1 there. */
static void slot_is_read_inside_its_gpu_before_it_is_overwritten(void **state)
{
    (void)state;
    rows what = {2, 2, 0, 3, ROW(0, 1, 1, 2), ROW(1, 2, 1, 0)};
    eplb_migration_options options = options_of(EPLB_MIGRATION_IN_PLACE, 0);
    rows spare = {3, 2, 0, 3, ROW(0, 1, 1, 2, 0, 1), ROW(1, 2, 1, 2, 0, 1)};
    eplb_migration *migration = migration_of(&spare, &options);
    assert_int_equal(info_of(migration).local_copies, 1);
    assert_int_equal(info_of(migration).node_copies, 1);
    eplb_migration_destroy(&migration);
    options.buffer_slots = -1;
    migration = migration_of(&what, &options);
    assert_int_equal(info_of(migration).local_copies, 1);
    assert_int_equal(info_of(migration).node_copies, 2);
    eplb_migration_destroy(&migration);
}

static void staged_copies_leave_the_old_map_until_the_commit(void **state)
{
    (void)state;
    rows what = {2, 2, 0, 3, ROW(0, 1, 2, 0), ROW(0, 1, 2, 1)};
    eplb_migration_options options = options_of(EPLB_MIGRATION_STAGED, 1);
    eplb_migration *migration = migration_of(&what, &options);
    assert_int_equal(eplb_migration_rounds(migration), 1);
    eplb_round round = round_of(migration, 0);
    assert_int_equal(round.commit, 1);
    assert_int_equal(round.copies[0].buffer, 0);
    assert_map(round.map_during, 0, 1, 2, 0);
    assert_map(round.map_after, 0, 1, 2, 1);
    eplb_migration_destroy(&migration);
}

static void staged_layer_is_committed_in_parts_that_the_buffer_holds(void **state)
{
    (void)state;
    rows what = {2, 2, 0, 2, ROW(0, 1, -1, -1), ROW(0, 1, 1, 0)};
    eplb_migration_options options = options_of(EPLB_MIGRATION_STAGED, 1);
    eplb_migration *migration = migration_of(&what, &options);
    assert_int_equal(eplb_migration_rounds(migration), 2);
    assert_map(round_of(migration, 0).map_after, 0, 1, 1, -1);
    eplb_migration_destroy(&migration);
    options.buffer_slots = -1;
    migration = migration_of(&what, &options);
    assert_int_equal(eplb_migration_rounds(migration), 1);
    assert_int_equal(info_of(migration).buffer_slots, 2);
    eplb_migration_destroy(&migration);
}

static void renamed_slots_are_local_copies(void **state)
{
    (void)state;
    rows what = {1, 3, 0, 2, ROW(0, 1, -1), ROW(0, -1, 1)};
    eplb_migration *migration = migration_of(&what, NULL);
    eplb_migration_info info = info_of(migration);
    assert_int_equal(info.local_copies, 1);
    assert_int_equal(info.node_copies + info.remote_copies + info.storage_copies, 0);
    assert_int_equal(info.most_copies, 0);
    assert_int_equal(info.most_sent_all, 0);
    assert_map(round_of(migration, 0).map_during, 0, 1, -1);
    assert_map(round_of(migration, 0).map_after, 0, -1, 1);
    eplb_migration_destroy(&migration);
}

static void staged_slots_of_a_gpu_change_places_at_once(void **state)
{
    (void)state;
    rows what = {2, 2, 0, 2, ROW(0, 1, 0, 1), ROW(1, 0, 0, 1)};
    eplb_migration_options options = options_of(EPLB_MIGRATION_STAGED, 2);
    eplb_migration *migration = migration_of(&what, &options);
    assert_int_equal(eplb_migration_rounds(migration), 1);
    assert_int_equal(info_of(migration).local_copies, 2);
    eplb_migration_destroy(&migration);
}

static void lost_expert_is_read_from_storage_once_and_first(void **state)
{
    (void)state;
    rows what = {4, 1, 0, 3, ROW(0, 2, 2, -1), ROW(0, 1, 2, 1)};
    eplb_migration_options options = options_of(EPLB_MIGRATION_IN_PLACE, 1);
    options.max_copies = 1;
    eplb_migration *migration = migration_of(&what, &options);
    const eplb_copy *first = round_of(migration, 0).copies;
    assert_int_equal(first->source, EPLB_COPY_STORAGE);
    assert_int_equal(first->expert, 1);
    assert_int_equal(first->source_gpu, -1);
    assert_int_equal(first->source_slot, -1);
    assert_int_equal(info_of(migration).storage_copies, 1);
    assert_int_equal(info_of(migration).node_copies, 1);
    eplb_migration_destroy(&migration);
}

static void slot_to_be_empty_leaves_the_map_without_a_copy(void **state)
{
    (void)state;
    rows what = {2, 1, 0, 1, ROW(0, 0), ROW(-1, 0)};
    eplb_migration *migration = migration_of(&what, NULL);
    assert_int_equal(eplb_migration_rounds(migration), 1);
    eplb_round round = round_of(migration, 0);
    assert_int_equal(round.copy_count, 0);
    assert_null(round.copies);
    assert_map(round.map_during, 0, 0);
    assert_map(round.map_after, -1, 0);
    assert_int_equal(info_of(migration).layers_changed, 1);
    eplb_migration_destroy(&migration);
}

static void source_of_the_same_node_wins(void **state)
{
    (void)state;
    rows what = {4, 1, 2, 2, ROW(0, 1, 0, -1), ROW(0, 1, 0, 0)};
    eplb_migration *migration = migration_of(&what, NULL);
    assert_int_equal(round_of(migration, 0).copies->source_gpu, 2);
    assert_int_equal(info_of(migration).node_copies, 1);
    eplb_migration_destroy(&migration);
}

static void senders_share_the_copies(void **state)
{
    (void)state;
    rows what = {6, 1, 0, 2, ROW(0, 0, 1, -1, -1, -1), ROW(0, 0, 1, 0, 0, 1)};
    eplb_migration *migration = migration_of(&what, NULL);
    assert_int_equal(info_of(migration).most_sent, 1);
    assert_int_equal(info_of(migration).most_sent_all, 1);
    assert_int_equal(info_of(migration).most_received, 1);
    assert_int_equal(info_of(migration).most_copies, 3);
    eplb_migration_destroy(&migration);
}

/* Experts 0 and 1 take GPUs 0 and 2, from which alone expert 2 can come. */
static void early_choices_of_sources_are_mended(void **state)
{
    (void)state;
    rows what = {7,
                 2,
                 0,
                 3,
                 ROW(0, 2, 0, -1, 1, 2, 1, -1, -1, -1, -1, -1, -1, -1),
                 ROW(0, 2, 0, -1, 1, 2, 1, -1, 0, -1, 1, -1, 2, -1)};
    eplb_migration *migration = migration_of(&what, NULL);
    assert_int_equal(info_of(migration).node_copies, 3);
    assert_int_equal(info_of(migration).most_sent_all, 1);
    eplb_migration_destroy(&migration);
}

static void rounds_keep_their_limits(void **state)
{
    (void)state;
    rows what = {4, 2, 0, 4, ROW(0, 1, -1, -1, -1, -1, 2, 3), ROW(0, 1, 0, 1, 0, 1, 2, 3)};
    eplb_migration_options options = options_of(EPLB_MIGRATION_IN_PLACE, 0);
    eplb_migration *migration = migration_of(&what, &options);
    assert_int_equal(eplb_migration_rounds(migration), 1);
    assert_int_equal(info_of(migration).most_sent, 4);
    eplb_migration_destroy(&migration);
    int32_t *limits[] = {&options.max_sends, &options.max_receives, &options.max_copies};
    for (size_t i = 0; i < 3; i++) {
        *limits[i] = 1;
        migration = migration_of(&what, &options);
        eplb_migration_info info = info_of(migration);
        int32_t counts[] = {info.most_sent, info.most_received, info.most_copies};
        assert_int_equal(counts[i], 1);
        assert_true(info.rounds >= 2);
        *limits[i] = -1;
        eplb_migration_destroy(&migration);
    }
}

static void dead_gpus_hold_and_send_nothing(void **state)
{
    (void)state;
    eplb_error error;
    eplb_cluster *cluster = make_cluster(3, 1, 0);
    eplb_placement *from = make_placement(make_cluster(3, 1, 0), 1, 2);
    assert_ok(eplb_cluster_set_alive(cluster, 0, 0, NULL), NULL);
    eplb_placement *to = make_placement(cluster, 1, 2);
    set_row(from, 0, ROW(0, 1, 1));
    set_row(to, 0, ROW(-1, 0, 1));
    eplb_migration *migration;
    assert_ok(eplb_migration_create(&migration, NULL, from, to, NULL, &error), &error);
    assert_ok(eplb_migration_check(migration, from, to, &error), &error);
    assert_map(eplb_migration_start_map(migration, 0), -1, 1, 1);
    assert_int_equal(info_of(migration).storage_copies, 1);
    eplb_migration_destroy(&migration);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
}

static void gpus_may_have_other_numbers_of_slots(void **state)
{
    (void)state;
    eplb_error error;
    eplb_cluster *cluster = make_cluster(2, 2, 0);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 1, NULL), NULL);
    eplb_placement *from = make_placement(cluster, 1, 3);
    cluster = make_cluster(2, 1, 0);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 3, NULL), NULL);
    eplb_placement *to = make_placement(cluster, 1, 3);
    set_row(from, 0, ROW(0, 1, 2));
    set_row(to, 0, ROW(0, 2, 1, 0));
    eplb_migration *migration;
    assert_ok(eplb_migration_create(&migration, NULL, from, to, NULL, &error), &error);
    assert_ok(eplb_migration_check(migration, from, to, &error), &error);
    assert_int_equal(eplb_migration_slots(migration), 5);
    assert_int_equal(eplb_cluster_gpu_slots(eplb_migration_cluster(migration), 0), 2);
    assert_map(eplb_migration_start_map(migration, 0), 0, 1, 2, -1, -1);
    assert_map(round_of(migration, 0).map_after, 0, -1, 2, 1, 0);
    eplb_migration_destroy(&migration);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
}

static void each_layer_has_its_own_rounds(void **state)
{
    (void)state;
    eplb_error error;
    int64_t first = -1;
    int64_t count = -1;
    eplb_placement *from = make_placement(make_cluster(2, 1, 0), 3, 1);
    eplb_placement *to = make_placement(make_cluster(2, 1, 0), 3, 1);
    for (int32_t l = 0; l < 3; l++) {
        set_row(from, l, ROW(0, -1));
        set_row(to, l, l == 1 ? ROW(0, -1) : ROW(0, 0));
    }
    eplb_migration *migration;
    assert_ok(eplb_migration_create(&migration, NULL, from, to, NULL, &error), &error);
    for (int32_t l = 0; l < 3; l++) {
        assert_ok(eplb_migration_layer_rounds(migration, l, &first, &count, &error), &error);
        assert_int_equal(count, l == 1 ? 0 : 1);
        assert_int_equal(first, l > 0 ? 1 : 0);
    }
    assert_int_equal(round_of(migration, 1).layer, 2);
    assert_int_equal(round_of(migration, 1).copies->layer, 2);
    assert_int_equal(info_of(migration).layers_changed, 2);
    eplb_migration_destroy(&migration);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
}

TEST_MAIN(cmocka_unit_test(same_placement_needs_no_round),
          cmocka_unit_test(slot_leaves_the_map_while_it_is_written),
          cmocka_unit_test(expert_has_its_new_place_before_its_old_one_is_written),
          cmocka_unit_test(circle_goes_through_the_buffer),
          cmocka_unit_test(circle_fills_the_buffer_in_several_rounds),
          cmocka_unit_test(circle_without_a_buffer_goes_through_an_empty_slot),
          cmocka_unit_test(lent_slot_is_restored),
          cmocka_unit_test(staged_circle_larger_than_the_buffer_goes_through_a_spare_slot),
          cmocka_unit_test(circle_without_buffer_and_spare_slot_is_refused),
          cmocka_unit_test(refusal_names_buffer_slots_that_are_enough),
          cmocka_unit_test(slots_of_a_gpu_change_places_through_one_buffer_slot),
          cmocka_unit_test(slots_of_a_gpu_change_places_without_a_buffer),
          cmocka_unit_test(what_can_be_done_only_by_overwriting_earlier_is_done),
          cmocka_unit_test(slot_is_read_inside_its_gpu_before_it_is_overwritten),
          cmocka_unit_test(staged_copies_leave_the_old_map_until_the_commit),
          cmocka_unit_test(staged_layer_is_committed_in_parts_that_the_buffer_holds),
          cmocka_unit_test(renamed_slots_are_local_copies),
          cmocka_unit_test(staged_slots_of_a_gpu_change_places_at_once),
          cmocka_unit_test(lost_expert_is_read_from_storage_once_and_first),
          cmocka_unit_test(slot_to_be_empty_leaves_the_map_without_a_copy),
          cmocka_unit_test(source_of_the_same_node_wins),
          cmocka_unit_test(senders_share_the_copies),
          cmocka_unit_test(early_choices_of_sources_are_mended),
          cmocka_unit_test(rounds_keep_their_limits),
          cmocka_unit_test(dead_gpus_hold_and_send_nothing),
          cmocka_unit_test(gpus_may_have_other_numbers_of_slots),
          cmocka_unit_test(each_layer_has_its_own_rounds))
