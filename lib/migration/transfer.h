/* SPDX-License-Identifier: MIT */
/*
 * One layer while it moves. What holds between rounds: the map names for each slot the expert that
 * tokens may meet there, and `contents` what is really there; each expert that was in the map at
 * the beginning still is.
 */
#ifndef EPLB_MIGRATION_TRANSFER_H
#define EPLB_MIGRATION_TRANSFER_H

#include <stdbool.h>

#include "migration/schedule.h"
#include "migration/senders.h"

typedef struct eplb_transfer {
    eplb_migration *migration;
    const eplb_placement *from;
    const eplb_placement *to;
    const eplb_cluster *cluster;
    bool staged;
    bool is_sparing; /* slots wait until others of their GPU have been read from them */
    int32_t slots;
    int32_t experts;
    int32_t layer;
    int32_t layer_id;

    /* [slots] */
    int32_t *gpu;
    int32_t *target;   /* expert in the end; -1: none */
    int32_t *map;      /* -1: not in the map */
    int32_t *contents; /* -1: nothing of use */
    int32_t *writing;  /* expert that is being written or waits in a buffer for the commit; or -1 */
    bool *is_read;     /* in this round */
    bool *is_lent;     /* holds an expert on its way to another slot */
    bool *can_lend;    /* exists in the end */
    bool *is_seen;     /* scratch */
    int32_t *next_wanted;
    int32_t *next_holder;
    int32_t *previous_holder;
    int32_t *batch; /* slots that a commit writes */
    int32_t batch_count;

    /* [experts] */
    int32_t *first_wanted; /* slots with that target, ascending; or -1 */
    int32_t *first_holder; /* slots with that in contents; or -1 */
    int32_t *replicas;     /* in the map without what is being written; of a batch, as after it */

    /* [GPUs] */
    int32_t *sent; /* in this round, and so on */
    int32_t *received;
    int32_t *sent_in_layer;
    int64_t *sent_in_all;
    int32_t *buffered; /* slots of the batch */
    int32_t *ring;     /* slot that a ring inside the GPU has come to; -1: none */

    int32_t copies; /* of the round, local ones not counted */
    size_t first_copy;
    size_t current_map; /* the map in force, in the migration */
    eplb_senders senders;
} eplb_transfer;

eplb_status eplb_transfer_init(eplb_transfer *transfer, eplb_migration *migration,
                               const eplb_placement *from, const eplb_placement *to,
                               eplb_error *error);
void eplb_transfer_free(eplb_transfer *transfer);

/* Adds the rounds of one layer to the migration. */
eplb_status eplb_transfer_layer(eplb_transfer *transfer, int32_t layer, eplb_error *error);

/* Whether a slot has not yet what it is to have. */
static inline bool eplb_transfer_is_pending(const eplb_transfer *transfer, int32_t slot)
{
    return transfer->target[slot] >= 0 && transfer->map[slot] != transfer->target[slot];
}

/* Whether a slot holds an expert on its way which has not arrived anywhere, nor will in this round
 * or batch. */
bool eplb_transfer_must_keep(const eplb_transfer *transfer, int32_t slot);

/* Whether a pending slot may be written to in this round or batch, if its expert lives on. */
bool eplb_transfer_may_write(const eplb_transfer *transfer, int32_t slot);

/* A slot of the same GPU that waits for what is in a slot and would find it nowhere else on the
 * GPU; -1: there is none. */
int32_t eplb_transfer_local_heir(const eplb_transfer *transfer, int32_t slot);

/* Whether the map can do without a slot. */
static inline bool eplb_transfer_is_spare(const eplb_transfer *transfer, int32_t slot)
{
    return transfer->map[slot] < 0 || transfer->replicas[transfer->map[slot]] >= 2;
}

/*
 * Order in which slots are filled: 0 for experts that are nowhere, 1 for those with a single
 * replica, which others may wait for, 2 for the rest. It falls while a round is made.
 */
#define EPLB_TRANSFER_RANKS 3
int32_t eplb_transfer_rank(const eplb_transfer *transfer, int32_t slot);

/* round.c: copies */

void eplb_transfer_begin_round(eplb_transfer *transfer);

/* Adds the copy of an expert to the round, straight into its slot or (buffer >= 0) by way of a
 * buffer slot, unless the round has no room for it or no slot to read from; `added` says which. */
eplb_status eplb_transfer_copy(eplb_transfer *transfer, int32_t slot, int32_t expert,
                               int32_t buffer, bool *added, eplb_error *error);

/* Ends a round whose copies went straight into slots; does nothing when it has none. */
eplb_status eplb_transfer_end_round(eplb_transfer *transfer, eplb_error *error);

/* Ends a round of staged copies; `commit`: the batch is complete. */
eplb_status eplb_transfer_end_staged(eplb_transfer *transfer, bool commit, eplb_error *error);

/* Ends a round of copies straight into slots in which the first `count` slots of the batch are
 * committed, too; these have been copied in earlier rounds. */
eplb_status eplb_transfer_end_mixed(eplb_transfer *transfer, int32_t count, eplb_error *error);

/* batch.c: slots that are committed together */

/* Chooses as many pending slots as can be committed at once and as the buffer holds. `sparing`:
 * none whose local heir does not come along, but for experts that are nowhere. */
void eplb_transfer_choose(eplb_transfer *transfer, bool sparing);

/* Adds a slot to the batch; false when the buffer is full. */
bool eplb_transfer_stage(eplb_transfer *transfer, int32_t slot, int32_t expert);

/* The rounds of the batch. */
eplb_status eplb_transfer_commit(eplb_transfer *transfer, eplb_error *error);

/* EPLB_ERROR_INFEASIBLE with the buffer slots that the first pending slot needs. */
eplb_status eplb_transfer_refuse(eplb_transfer *transfer, eplb_error *error);

/* exchange.c */

/* In place: rounds for slots of a GPU that wait for each other, by way of one buffer slot; none
 * where there are no such slots. */
eplb_status eplb_transfer_exchange(eplb_transfer *transfer, eplb_error *error);

/* detour.c */

/* Where pending slots wait for each other: takes experts that are in the way to spare slots.
 * `found` is false when there was no spare slot. */
eplb_status eplb_transfer_detour(eplb_transfer *transfer, bool *found, eplb_error *error);

#endif
