/* SPDX-License-Identifier: MIT */
/* Schedules that are right are proven everywhere else; here each gets one fault. */
#include "migration.h"

#include "migration/schedule.h"

/* One copy in place, of expert 1 to slot 3. */
static const rows one_copy = {
    2, 2, 0, 3, (const int32_t[]){0, 1, 2, 0}, (const int32_t[]){0, 1, 2, 1}};

/* Two copies in place that could read each other's slots before they are written. */
static const rows two_copies = {
    4, 1, 0, 2, (const int32_t[]){0, 0, 1, 1}, (const int32_t[]){0, 1, 1, 0}};

/* A circle that goes through the buffers of two GPUs. */
static const rows circle = {2, 1, 0, 2, (const int32_t[]){0, 1}, (const int32_t[]){1, 0}};

/* Two copies to one GPU, to be staged. */
static const rows same_gpu = {
    2, 2, 0, 2, (const int32_t[]){0, 1, -1, -1}, (const int32_t[]){0, 1, 1, 0}};

/* A slot is renamed. */
static const rows renaming = {1, 3, 0, 2, (const int32_t[]){0, 1, -1}, (const int32_t[]){0, -1, 1}};

/* Makes a schedule, damages it and lets the check find out. */
static void assert_found(const rows *what, int32_t mode, void (*damage)(eplb_migration *migration),
                         const char *text)
{
    eplb_error error;
    eplb_placement *from = placement_of(what, what->from);
    eplb_placement *to = placement_of(what, what->to);
    eplb_migration_options options = options_of(mode, mode == EPLB_MIGRATION_STAGED ? -1 : 1);
    eplb_migration *migration;
    assert_ok(eplb_migration_create(&migration, NULL, from, to, &options, &error), &error);
    assert_ok(eplb_migration_check(migration, from, to, &error), &error);
    damage(migration);
    assert_status(eplb_migration_check(migration, from, to, &error), EPLB_ERROR_DATA, &error);
    assert_string_equal(error.message, text);
    eplb_migration_destroy(&migration);
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
}

static int32_t *during(const eplb_migration *migration)
{
    return eplb_migration_map(migration, migration->rounds[0].during);
}

static int32_t *after(const eplb_migration *migration)
{
    return eplb_migration_map(migration, migration->rounds[0].after);
}

#define FAULT(name, what, mode, damage, text)                                                      \
    static void damage_##name(eplb_migration *migration)                                           \
    {                                                                                              \
        damage;                                                                                    \
    }                                                                                              \
    static void name##_is_found(void **state)                                                      \
    {                                                                                              \
        (void)state;                                                                               \
        assert_found(&what, mode, damage_##name, text);                                            \
    }

FAULT(written_slot_in_the_map, one_copy, EPLB_MIGRATION_IN_PLACE, during(migration)[3] = 0,
      "round 0 (layer 0): slot 3 of GPU 1 is in the map while it is written")
FAULT(slot_that_left_the_map, one_copy, EPLB_MIGRATION_IN_PLACE, during(migration)[0] = -1,
      "round 0 (layer 0): slot 0 of GPU 0 is not in the map as it was before the round")
FAULT(wrong_expert_in_the_map, one_copy, EPLB_MIGRATION_IN_PLACE, after(migration)[3] = 0,
      "round 0 (layer 0): slot 3 of GPU 1 is in the map for an expert that it does not hold")
FAULT(wrong_source, one_copy, EPLB_MIGRATION_IN_PLACE, migration->copies[0].source_slot = 0,
      "round 0 (layer 0): slot 3 of GPU 1 is copied from a slot with another expert")
FAULT(source_on_another_gpu, one_copy, EPLB_MIGRATION_IN_PLACE,
      migration->copies[0].source_slot = 2,
      "round 0 (layer 0): slot 3 of GPU 1 is copied from a slot that is not what it is said to be")
FAULT(wrong_kind_of_source, one_copy, EPLB_MIGRATION_IN_PLACE,
      migration->copies[0].source = EPLB_COPY_REMOTE,
      "round 0 (layer 0): slot 3 of GPU 1 is copied from a slot that is not what it is said to be")
FAULT(needless_storage, one_copy, EPLB_MIGRATION_IN_PLACE,
      (migration->copies[0].source = EPLB_COPY_STORAGE, migration->copies[0].source_gpu = -1),
      "round 0 (layer 0): slot 3 of GPU 1 is read from storage without need")
FAULT(source_that_is_written, two_copies, EPLB_MIGRATION_IN_PLACE,
      (migration->copies[1].source_slot = 1, migration->copies[1].source_gpu = 1),
      "round 0 (layer 0): slot 3 of GPU 3 is copied from a slot that is written")
FAULT(slot_out_of_range, one_copy, EPLB_MIGRATION_IN_PLACE, migration->copies[0].slot = 4,
      "round 0 (layer 0): a copy goes where there is no slot for it")
FAULT(slot_of_another_gpu, one_copy, EPLB_MIGRATION_IN_PLACE, migration->copies[0].gpu = 0,
      "round 0 (layer 0): a copy goes where there is no slot for it")
FAULT(copy_of_another_layer, one_copy, EPLB_MIGRATION_IN_PLACE, migration->copies[0].layer = 1,
      "round 0 (layer 0): a copy goes where there is no slot for it")
FAULT(round_of_another_layer, one_copy, EPLB_MIGRATION_IN_PLACE, migration->rounds[0].layer = 1,
      "round 0 (layer 0): it is among the rounds of another layer")
FAULT(sender_over_its_limit, one_copy, EPLB_MIGRATION_IN_PLACE, migration->options.max_sends = 0,
      "round 0 (layer 0): slot 3 of GPU 1 is one copy more than the limits allow")
FAULT(receiver_over_its_limit, same_gpu, EPLB_MIGRATION_STAGED, migration->options.max_receives = 1,
      "round 0 (layer 0): slot 3 of GPU 1 is one copy more than the limits allow")
FAULT(round_over_its_limit, two_copies, EPLB_MIGRATION_IN_PLACE, migration->options.max_copies = 1,
      "round 0 (layer 0): slot 3 of GPU 3 is one copy more than the limits allow")
FAULT(copy_in_place_when_staged, one_copy, EPLB_MIGRATION_IN_PLACE,
      migration->options.mode = EPLB_MIGRATION_STAGED,
      "round 0 (layer 0): slot 3 of GPU 1 is written while it is in use")
FAULT(buffer_slot_beyond_the_last, circle, EPLB_MIGRATION_IN_PLACE, migration->copies[0].buffer = 1,
      "round 0 (layer 0): slot 0 of GPU 0 takes more buffer slots than there are")
FAULT(buffer_slot_in_use, same_gpu, EPLB_MIGRATION_STAGED, migration->copies[1].buffer = 0,
      "round 0 (layer 0): slot 3 of GPU 1 takes a buffer slot that is in use")
FAULT(slot_written_twice, two_copies, EPLB_MIGRATION_IN_PLACE, migration->copies[1].slot = 1,
      "round 0 (layer 0): slot 1 of GPU 1 is written twice")
FAULT(forgotten_commit, circle, EPLB_MIGRATION_IN_PLACE, migration->rounds[0].commit = 0,
      "round 0 (layer 0): slot 0 of GPU 0 is in the map for an expert that it does not hold")
FAULT(missing_expert, circle, EPLB_MIGRATION_IN_PLACE, after(migration)[1] = -1,
      "round 0 (layer 0): expert 0 is in no slot of the map")
FAULT(empty_slot_when_staged, same_gpu, EPLB_MIGRATION_STAGED, after(migration)[0] = -1,
      "round 0 (layer 0): slot 0 of GPU 0 leaves the map before its time")
FAULT(expert_twice_on_a_gpu, renaming, EPLB_MIGRATION_IN_PLACE, after(migration)[1] = 1,
      "round 0 (layer 0): slot 2 of GPU 0 has an expert that the GPU has already")
FAULT(wrong_end, one_copy, EPLB_MIGRATION_IN_PLACE, after(migration)[3] = -1,
      "layer 0: slot 3 of GPU 1 ends with expert -1, in the new placement it has 1")
FAULT(wrong_start, one_copy, EPLB_MIGRATION_IN_PLACE, migration->maps[3] = 2,
      "layer 0: slot 3 of GPU 1 starts with expert 2, in the old placement it has 0")

static void other_placements_are_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_migration *migration = migration_of(&one_copy, NULL);
    eplb_placement *same = placement_of(&one_copy, one_copy.from);
    eplb_placement *other = placement_of(&circle, circle.from);
    assert_status(eplb_migration_check(migration, other, same, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_contains(error.message, "3 experts on 2 GPUs");
    assert_status(eplb_migration_check(migration, same, NULL, &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_migration_check(NULL, same, same, &error), EPLB_ERROR_ARGUMENT, &error);
    eplb_migration_destroy(&migration);
    eplb_placement_destroy(&same);
    eplb_placement_destroy(&other);
}

TEST_MAIN(cmocka_unit_test(written_slot_in_the_map_is_found),
          cmocka_unit_test(slot_that_left_the_map_is_found),
          cmocka_unit_test(wrong_expert_in_the_map_is_found),
          cmocka_unit_test(wrong_source_is_found), cmocka_unit_test(source_on_another_gpu_is_found),
          cmocka_unit_test(wrong_kind_of_source_is_found),
          cmocka_unit_test(needless_storage_is_found),
          cmocka_unit_test(source_that_is_written_is_found),
          cmocka_unit_test(slot_out_of_range_is_found),
          cmocka_unit_test(slot_of_another_gpu_is_found),
          cmocka_unit_test(copy_of_another_layer_is_found),
          cmocka_unit_test(round_of_another_layer_is_found),
          cmocka_unit_test(sender_over_its_limit_is_found),
          cmocka_unit_test(receiver_over_its_limit_is_found),
          cmocka_unit_test(round_over_its_limit_is_found),
          cmocka_unit_test(copy_in_place_when_staged_is_found),
          cmocka_unit_test(buffer_slot_beyond_the_last_is_found),
          cmocka_unit_test(buffer_slot_in_use_is_found),
          cmocka_unit_test(slot_written_twice_is_found),
          cmocka_unit_test(forgotten_commit_is_found), cmocka_unit_test(missing_expert_is_found),
          cmocka_unit_test(empty_slot_when_staged_is_found),
          cmocka_unit_test(expert_twice_on_a_gpu_is_found), cmocka_unit_test(wrong_end_is_found),
          cmocka_unit_test(wrong_start_is_found), cmocka_unit_test(other_placements_are_refused))
