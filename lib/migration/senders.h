/* SPDX-License-Identifier: MIT */
/*
 * Who sends. The rounds of a layer say when each copy is made, and so which slots it can be read
 * from; of these any will do. A place is one GPU in one round, which may send only so many copies.
 */
#ifndef EPLB_MIGRATION_SENDERS_H
#define EPLB_MIGRATION_SENDERS_H

#include "migration/schedule.h"

typedef struct eplb_sender_choice {
    int32_t slot;
    int32_t place;
} eplb_sender_choice;

typedef struct eplb_sent_copy {
    size_t copy;         /* in the migration */
    size_t first_choice; /* its choices are those up to the next copy's first one */
    int32_t place;       /* that is chosen */
    int32_t next;        /* the next copy of the place, or -1 */
} eplb_sent_copy;

typedef struct eplb_sending_place {
    int32_t gpu;
    int32_t sent;       /* in the round */
    int32_t next;       /* the GPU's place in an earlier round, or -1 */
    int32_t first_copy; /* or -1; valid during a search, as all below */
    int32_t from;       /* the place from which the search came here, or -1 */
    int32_t moved;      /* the copy that would move here from there; -1: the same GPU */
    int32_t seen;       /* the search that came here last */
} eplb_sending_place;

typedef struct eplb_senders {
    const eplb_hooks *hooks;
    int32_t gpus;
    int32_t most;   /* copies that a GPU sends in a round; -1: no limit */
    int32_t *sent;  /* [gpus] in this layer */
    int32_t *place; /* [gpus] the last place of the GPU, or -1 */
    int32_t *seen;  /* [gpus] as in places */
    int32_t search; /* number of the search */
    eplb_sent_copy *copies;
    size_t copy_count;
    size_t copy_room;
    eplb_sender_choice *choices;
    size_t choice_count;
    size_t choice_room;
    eplb_sending_place *places;
    size_t place_count;
    size_t place_room;
    size_t round_place; /* places from this one on are of the round that is being made */
    int32_t *queue;     /* places */
    size_t queue_room;
} eplb_senders;

/* `sent` [gpus] stays the caller's and is kept up to date. */
eplb_status eplb_senders_init(eplb_senders *senders, const eplb_hooks *hooks, int32_t gpus,
                              int32_t most, int32_t *sent, eplb_error *error);
void eplb_senders_free(eplb_senders *senders);

/* Forgets everything, for a new layer. */
void eplb_senders_clear(eplb_senders *senders);

/* Begins a round. */
void eplb_senders_begin(eplb_senders *senders);

/* Adds a copy of the round; its choices follow, each a slot on a GPU, among them the chosen one. */
eplb_status eplb_senders_add_copy(eplb_senders *senders, size_t copy, eplb_error *error);
eplb_status eplb_senders_add_choice(eplb_senders *senders, int32_t gpu, int32_t slot, bool chosen,
                                    eplb_error *error);

/*
 * Changes choices until the GPU that sends most in all rounds sends as little as it can, within the
 * limit of each round, and writes them into the migration's copies. Moves one copy after another
 * along a path of copies from the busiest GPU to one that sends at least two less: where there is
 * none, the GPUs that are reached can only share what they send among themselves.
 */
eplb_status eplb_senders_level(eplb_senders *senders, eplb_migration *migration, eplb_error *error);

#endif
