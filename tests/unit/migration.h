/* SPDX-License-Identifier: MIT */
/* Small migrations, made or the test fails. */
#ifndef EPLB_TESTS_UNIT_MIGRATION_H
#define EPLB_TESTS_UNIT_MIGRATION_H

#include "model.h"

#include <eplb/migration.h>

typedef struct rows {
    int32_t gpus;
    int32_t slots_per_gpu;
    int32_t gpus_per_node;
    int32_t experts;
    const int32_t *from;
    const int32_t *to;
} rows;

static inline eplb_placement *placement_of(const rows *what, const int32_t *row)
{
    eplb_placement *placement = make_placement(
        make_cluster(what->gpus, what->slots_per_gpu, what->gpus_per_node), 1, what->experts);
    set_row(placement, 0, row);
    return placement;
}

static inline eplb_migration_options options_of(int32_t mode, int32_t buffer_slots)
{
    eplb_migration_options options;
    eplb_migration_options_init(&options);
    options.mode = mode;
    options.buffer_slots = buffer_slots;
    return options;
}

static inline eplb_status try_migration(eplb_migration **migration, const rows *what,
                                        const eplb_migration_options *options, eplb_error *error)
{
    eplb_placement *from = placement_of(what, what->from);
    eplb_placement *to = placement_of(what, what->to);
    eplb_status status = eplb_migration_create(migration, NULL, from, to, options, error);
    if (status == EPLB_OK) {
        assert_ok(eplb_migration_check(*migration, from, to, error), error);
    }
    eplb_placement_destroy(&from);
    eplb_placement_destroy(&to);
    return status;
}

/* A schedule that has been checked. */
static inline eplb_migration *migration_of(const rows *what, const eplb_migration_options *options)
{
    eplb_error error;
    eplb_migration *migration = NULL;
    assert_ok(try_migration(&migration, what, options, &error), &error);
    return migration;
}

static inline eplb_round round_of(const eplb_migration *migration, int64_t index)
{
    eplb_round round = {.struct_size = sizeof(round)};
    assert_ok(eplb_migration_get_round(migration, index, &round, NULL), NULL);
    return round;
}

static inline eplb_migration_info info_of(const eplb_migration *migration)
{
    eplb_migration_info info = {.struct_size = sizeof(info)};
    assert_ok(eplb_migration_get_info(migration, &info, NULL), NULL);
    return info;
}

#define assert_map(map, ...)                                                                       \
    assert_memory_equal(map, ((const int32_t[]){__VA_ARGS__}),                                     \
                        sizeof((const int32_t[]){__VA_ARGS__}))

#endif
