/* SPDX-License-Identifier: MIT */
/* What a migration is made of: copies, rounds and maps, in the order in which they were added. */
#ifndef EPLB_MIGRATION_SCHEDULE_H
#define EPLB_MIGRATION_SCHEDULE_H

#include <eplb/migration.h>

#include "base/memory.h"

typedef struct eplb_round_record {
    int32_t layer;
    int32_t commit;
    size_t first_copy;
    int32_t copy_count;
    size_t during; /* which of the maps */
    size_t after;
} eplb_round_record;

struct eplb_migration {
    eplb_hooks hooks;
    eplb_cluster *cluster;
    int32_t layers;
    int32_t experts;
    int32_t slots;
    eplb_migration_options options;
    eplb_copy *copies;
    size_t copy_count;
    size_t copy_room;
    eplb_round_record *rounds;
    size_t round_count;
    size_t round_room;
    int32_t *maps; /* [map_count][slots] */
    size_t map_count;
    size_t map_room;
    size_t *first_round; /* [layers + 1] */
    size_t *start;       /* [layers] which of the maps */
    eplb_migration_info info;
};

/* Makes room for `needed` items of `size` bytes in an array that has room for `room`. */
eplb_status eplb_migration_grow(const eplb_hooks *hooks, void **items, size_t *room, size_t needed,
                                size_t size, eplb_error *error);

eplb_status eplb_migration_add_copy(eplb_migration *migration, const eplb_copy *copy,
                                    eplb_error *error);

/* The new map is the last one. */
eplb_status eplb_migration_add_map(eplb_migration *migration, const int32_t *map,
                                   eplb_error *error);

/* Adds a round of the copies added since the last round. */
eplb_status eplb_migration_add_round(eplb_migration *migration, const eplb_round_record *round,
                                     eplb_error *error);

static inline int32_t *eplb_migration_map(const eplb_migration *migration, size_t index)
{
    return migration->maps + index * (size_t)migration->slots;
}

/* The copies of a round; NULL: it has none. */
static inline const eplb_copy *eplb_migration_copies(const eplb_migration *migration,
                                                     const eplb_round_record *round)
{
    return round->copy_count > 0 ? migration->copies + round->first_copy : NULL;
}

/* Fills in the info of a complete schedule, but for what only its making knows: extra_copies. */
eplb_status eplb_migration_count(eplb_migration *migration, eplb_error *error);

#endif
