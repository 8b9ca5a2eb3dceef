/* SPDX-License-Identifier: MIT */
/*
 * Carrying out a rebalance while tokens flow: the copies that lead from one placement to another,
 * in rounds, so that at no moment a token meets wrong weights.
 *
 * A round belongs to one layer; the rounds of a layer follow each other, and a layer can be carried
 * out without the others. In a round:
 *
 *     1. route by map_during, from the next forward pass on;
 *     2. make the copies, in any order or all at once: each writes one expert's weights into a
 * slot, or into a buffer slot of that GPU (`buffer` >= 0);
 *     3. when all are done: if the round commits, move what the layer's buffer slots hold into the
 *        slots that their copies name, between two forward passes;
 *     4. route by map_after.
 *
 *     eplb_migration *migration;
 *     eplb_migration_create(&migration, NULL, current, eplb_plan_placement(plan), NULL, &error);
 *     for (int64_t r = 0; r < eplb_migration_rounds(migration); r++) {
 *         eplb_round round = {.struct_size = sizeof(round)};
 *         eplb_migration_get_round(migration, r, &round, &error);
 *         route(round.layer, round.map_during);
 *         copy_weights(round.copies, round.copy_count);
 *         if (round.commit) {
 *             empty_buffers(round.layer);
 *         }
 *         route(round.layer, round.map_after);
 *     }
 *     eplb_migration_destroy(&migration);
 *
 * What holds at every moment, also when copies of a round stop half way:
 *   - every slot in the map in force holds the weights of its expert and is not being written;
 *   - every expert that had a replica on a live GPU before has one in the map, and experts that had
 *     none come first and have one as soon as they are read from storage;
 *   - no map has an expert twice on a GPU, unless one of the placements has.
 * To stop for good, stay with the map in force: it is a placement like any other, perhaps with
 * empty slots, and a new plan can start from it. What is in buffers then is of no use.
 *
 * Two modes, for two kinds of engines:
 *   - EPLB_MIGRATION_IN_PLACE: slots that are being written are -1 in map_during; the engine must
 *     route around them. A slot is written only while its old expert has another replica in the
 *     map.
 *   - EPLB_MIGRATION_STAGED: all copies go to buffer slots, and the old map stays until the commit.
 *     For engines that take -1 for an expert: SGLang takes it for the last one. The copies of a
 *     layer that the buffer does not hold at once are committed in parts. No slot leaves the map
 *     but those that shall be empty in the end.
 *
 * Experts whose only replicas wait for each other's slots: in place, they are staged in the buffer
 * and committed together where it has room for them. Else one of them goes to a spare slot first,
 * one that is empty or whose expert has another replica; that slot is restored afterwards, which
 * makes one or two copies more (`extra_copies`). Where there is neither, that is an error. Staged
 * slots between which experts move inside a GPU must be committed together, and take a buffer slot
 * each: with a buffer of one slot such experts go by way of another GPU.
 * In place one buffer slot is enough for them, where one of the experts has another replica;
 * without a buffer that one comes from another GPU.
 *
 * Sources: an expert is copied from a slot of the same GPU (where slots are renamed, and on ways
 * through spare slots), else of the same node, else of another node, else from storage. Among the
 * GPUs that are equally near, sources are chosen so that the GPU that sends most in the layer sends
 * as little as it can, given the order of the copies; ties go to the GPU that has sent less in
 * other layers, and to the smaller one.
 *
 * Slots are numbered as in the two placements. Where a GPU has other numbers of slots in them,
 * they are numbered as in eplb_migration_cluster, which has the larger number of them on each GPU.
 *
 * Threads: many threads may read a migration at once. Determinism: it depends on the placements and
 * the options only, so each rank may make it by itself.
 */
#ifndef EPLB_MIGRATION_H
#define EPLB_MIGRATION_H

#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/placement.h>
#include <eplb/status.h>

EPLB_BEGIN_DECLS

typedef enum eplb_migration_mode {
    EPLB_MIGRATION_IN_PLACE = 0,
    EPLB_MIGRATION_STAGED = 1,
} eplb_migration_mode;

typedef struct eplb_migration_options {
    uint32_t struct_size; /* sizeof(eplb_migration_options), by eplb_migration_options_init */
    int32_t mode;         /* an eplb_migration_mode; default EPLB_MIGRATION_IN_PLACE */

    /* Most copies in a round: that one GPU sends, that one GPU gets (from other GPUs or from
     * storage), and of all GPUs; >= 1, or -1 (default): no limit. Copies inside a GPU do not count.
     */
    int32_t max_sends;
    int32_t max_receives;
    int32_t max_copies;

    /* Buffer slots that each GPU has beside its slots, each for one expert of one layer: >= 0, when
     * staged >= 1; -1: as many as it takes. Default 1. */
    int32_t buffer_slots;
} eplb_migration_options;

/* Writes the defaults. */
EPLB_API void eplb_migration_options_init(eplb_migration_options *options);

/* Where a copy comes from, nearest first. */
typedef enum eplb_copy_source {
    EPLB_COPY_LOCAL = 0,   /* another slot of the same GPU: a renaming, no copy to be paid for */
    EPLB_COPY_NODE = 1,    /* another GPU of the same node */
    EPLB_COPY_REMOTE = 2,  /* a GPU of another node */
    EPLB_COPY_STORAGE = 3, /* no live GPU has the expert */
} eplb_copy_source;

/* The name that reports use: "local", "node", "remote", "storage". A static string. */
EPLB_API const char *eplb_copy_source_name(eplb_copy_source source);

typedef struct eplb_copy {
    int32_t layer; /* index in the placements */
    int32_t expert;
    int32_t gpu;        /* where it goes */
    int32_t slot;       /* there; in the numbers of the map */
    int32_t buffer;     /* -1: straight into the slot; else by way of this buffer slot of the GPU */
    int32_t source;     /* an eplb_copy_source */
    int32_t source_gpu; /* -1: storage */
    int32_t source_slot; /* -1: storage */
} eplb_copy;

/* Pointers are valid as long as the migration. */
typedef struct eplb_round {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t layer;        /* index in the placements */
    int32_t commit;       /* 1: the layer's buffers are moved into their slots at the end */

    /* Copies of the round; 0: only the map changes. */
    int32_t copy_count;
    const eplb_copy *copies;

    const int32_t *map_during; /* [slots] while the copies run; -1: nothing may go there */
    const int32_t *map_after;  /* [slots] from then on */
} eplb_round;

/* The whole. Bytes are copies x the bytes of one expert of one layer, which the caller knows. */
typedef struct eplb_migration_info {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t buffer_slots; /* most buffer slots that are in use on one GPU at a time */
    int64_t rounds;
    int64_t local_copies;
    int64_t node_copies;
    int64_t remote_copies;
    int64_t storage_copies;
    int64_t extra_copies;      /* of all of these: for ways round through spare slots */
    int32_t layers_changed;    /* layers with rounds */
    int32_t most_sent;         /* copies that one GPU sends in one round */
    int32_t most_received;     /* copies that one GPU gets in one round, not from itself */
    int32_t most_copies;       /* copies in one round, but local ones */
    int64_t most_sent_all;     /* copies that one GPU sends in all rounds */
    int64_t most_received_all; /* copies that one GPU gets in all rounds, not from itself */
} eplb_migration_info;

typedef struct eplb_migration eplb_migration;

/*
 * Makes the schedule that leads from `from`, the placement in force, to `to`.
 *
 * The two have the same GPUs, experts and layers, with the same ids, and as many of these are the
 * draft model's. `to` has a replica of each expert in each layer, none on a dead GPU or in a closed
 * slot; it may have empty slots, which hold nothing in the end. `from` may be anything: what it has
 * on GPUs that are dead in either cluster, or in closed slots, does not exist. Nodes are those of
 * `to`'s cluster.
 *
 * options: NULL for the defaults.
 *
 * Errors: EPLB_ERROR_ARGUMENT for placements that do not match and options out of range;
 * EPLB_ERROR_DATA for a `to` that is not valid; EPLB_ERROR_INFEASIBLE where experts wait for each
 * other's slots and there is neither buffer nor spare slot, with the buffer slots that are enough.
 *
 * Cost: for each layer O(rounds x slots), in time and memory, and up to O(copies x copies) for the
 * choice of the sources.
 */
EPLB_API eplb_status eplb_migration_create(eplb_migration **out, const eplb_hooks *hooks,
                                           const eplb_placement *from, const eplb_placement *to,
                                           const eplb_migration_options *options,
                                           eplb_error *error);

/* Frees the migration and sets the pointer to NULL. */
EPLB_API void eplb_migration_destroy(eplb_migration **migration);

/* How the slots of the maps are numbered. Valid as long as the migration. */
EPLB_API const eplb_cluster *eplb_migration_cluster(const eplb_migration *migration);

/* Length of a map. */
EPLB_API int32_t eplb_migration_slots(const eplb_migration *migration);

/* Rounds of all layers. */
EPLB_API int64_t eplb_migration_rounds(const eplb_migration *migration);

/* The rounds of one layer are first..first + count - 1. EPLB_ERROR_ARGUMENT for an index out of
 * range. */
EPLB_API eplb_status eplb_migration_layer_rounds(const eplb_migration *migration, int32_t layer,
                                                 int64_t *first, int64_t *count, eplb_error *error);

/* The map [slots] to route by before the layer's first round: `from` without what does not exist.
 * NULL when the index is out of range. Valid as long as the migration. */
EPLB_API const int32_t *eplb_migration_start_map(const eplb_migration *migration, int32_t layer);

/* Copies a round's description out, at most struct_size bytes of it. */
EPLB_API eplb_status eplb_migration_get_round(const eplb_migration *migration, int64_t index,
                                              eplb_round *round, eplb_error *error);

/* Copies results out, at most struct_size bytes of them. */
EPLB_API eplb_status eplb_migration_get_info(const eplb_migration *migration,
                                             eplb_migration_info *info, eplb_error *error);

/*
 * Proves a schedule: carries it out with tags instead of weights and checks after every step what
 * is promised above, the limits of its options, and that the end is `to`. EPLB_ERROR_DATA with the
 * first fault in words, such as "round 3 (layer 7): slot 12 of GPU 1 is in the map while it is
 * written". Shares no code with what made the schedule. Cost: O(rounds x slots).
 */
EPLB_API eplb_status eplb_migration_check(const eplb_migration *migration,
                                          const eplb_placement *from, const eplb_placement *to,
                                          eplb_error *error);

EPLB_END_DECLS

#endif
