/* SPDX-License-Identifier: MIT */
/* Copies of a round and where they come from. */
#include "migration/transfer.h"
#include "model/cluster.h"

void eplb_transfer_begin_round(eplb_transfer *transfer)
{
    for (int32_t g = 0; g < transfer->cluster->gpus; g++) {
        transfer->sent[g] = 0;
        transfer->received[g] = 0;
    }
    transfer->copies = 0;
    transfer->first_copy = transfer->migration->copy_count;
    eplb_senders_begin(&transfer->senders);
}

static bool has_room(int32_t count, int32_t most)
{
    return most < 0 || count < most;
}

/* Slots of a batch keep their contents until the commit; others lose them at once. */
static bool is_readable(const eplb_transfer *transfer, int32_t slot)
{
    return transfer->writing[slot] < 0 || transfer->batch_count > 0;
}

static int32_t distance(const eplb_transfer *transfer, int32_t gpu, int32_t slot)
{
    int32_t source = transfer->gpu[slot];
    if (source == gpu) {
        return EPLB_COPY_LOCAL;
    }
    return transfer->cluster->gpu[source].node == transfer->cluster->gpu[gpu].node
               ? EPLB_COPY_NODE
               : EPLB_COPY_REMOTE;
}

/* How near the nearest slot is that an expert can be read from. */
static int32_t nearest(const eplb_transfer *transfer, int32_t gpu, int32_t expert)
{
    int32_t near = EPLB_COPY_STORAGE;
    for (int32_t s = transfer->first_holder[expert]; s >= 0; s = transfer->next_holder[s]) {
        int32_t d = is_readable(transfer, s) ? distance(transfer, gpu, s) : EPLB_COPY_STORAGE;
        near = d < near ? d : near;
    }
    return near;
}

/* Whether it is better to read from slot a than from b: its GPU is less busy. */
static bool is_better(const eplb_transfer *transfer, int32_t a, int32_t b)
{
    int32_t g = transfer->gpu[a];
    int32_t h = transfer->gpu[b];
    if (transfer->sent[g] != transfer->sent[h]) {
        return transfer->sent[g] < transfer->sent[h];
    }
    if (transfer->sent_in_layer[g] != transfer->sent_in_layer[h]) {
        return transfer->sent_in_layer[g] < transfer->sent_in_layer[h];
    }
    if (transfer->sent_in_all[g] != transfer->sent_in_all[h]) {
        return transfer->sent_in_all[g] < transfer->sent_in_all[h];
    }
    return a < b;
}

/* The best slot at that distance to read from; -1: their GPUs send enough in this round. */
static int32_t find_source(const eplb_transfer *transfer, int32_t gpu, int32_t expert, int32_t near)
{
    int32_t best = -1;
    for (int32_t s = transfer->first_holder[expert]; s >= 0; s = transfer->next_holder[s]) {
        bool fits = near == EPLB_COPY_LOCAL || has_room(transfer->sent[transfer->gpu[s]],
                                                        transfer->migration->options.max_sends);
        if (fits && is_readable(transfer, s) && distance(transfer, gpu, s) == near &&
            (best < 0 || is_better(transfer, s, best))) {
            best = s;
        }
    }
    return best;
}

/* Whether the round has room for a copy that is not local, wherever it comes from. */
static bool accepts(const eplb_transfer *transfer, int32_t gpu)
{
    const eplb_migration_options *options = &transfer->migration->options;
    return has_room(transfer->copies, options->max_copies) &&
           has_room(transfer->received[gpu], options->max_receives);
}

static void account(eplb_transfer *transfer, const eplb_copy *copy)
{
    if (copy->source_slot >= 0) {
        transfer->is_read[copy->source_slot] = true;
    }
    if (copy->source != EPLB_COPY_LOCAL) {
        transfer->copies++;
        transfer->received[copy->gpu]++;
    }
    if (copy->source == EPLB_COPY_NODE || copy->source == EPLB_COPY_REMOTE) {
        transfer->sent[copy->source_gpu]++;
        transfer->sent_in_layer[copy->source_gpu]++;
    }
    if (copy->buffer < 0) {
        transfer->writing[copy->slot] = copy->expert;
        if (transfer->map[copy->slot] >= 0) {
            transfer->replicas[transfer->map[copy->slot]]--;
            transfer->map[copy->slot] = -1;
        }
    }
}

eplb_status eplb_transfer_copy(eplb_transfer *transfer, int32_t slot, int32_t expert,
                               int32_t buffer, bool *added, eplb_error *error)
{
    int32_t gpu = transfer->gpu[slot];
    int32_t near = nearest(transfer, gpu, expert);
    *added = false;
    if ((near == EPLB_COPY_STORAGE && transfer->first_holder[expert] >= 0) ||
        (near != EPLB_COPY_LOCAL && !accepts(transfer, gpu))) {
        return EPLB_OK;
    }
    int32_t source = find_source(transfer, gpu, expert, near);
    if (near != EPLB_COPY_STORAGE && source < 0) {
        return EPLB_OK;
    }
    eplb_copy copy = {.layer = transfer->layer,
                      .expert = expert,
                      .gpu = gpu,
                      .slot = slot,
                      .buffer = buffer,
                      .source = near,
                      .source_gpu = source >= 0 ? transfer->gpu[source] : -1,
                      .source_slot = source};
    eplb_status status = eplb_migration_add_copy(transfer->migration, &copy, error);
    if (status == EPLB_OK) {
        account(transfer, &copy);
        *added = true;
    }
    return status;
}

/* Tells which slots a copy could be read from as well, now that it is known what is written. */
static eplb_status offer_choices(eplb_transfer *transfer, size_t index, eplb_error *error)
{
    const eplb_copy *copy = &transfer->migration->copies[index];
    if (copy->source == EPLB_COPY_LOCAL || copy->source == EPLB_COPY_STORAGE) {
        return EPLB_OK;
    }
    eplb_status status = eplb_senders_add_copy(&transfer->senders, index, error);
    for (int32_t s = transfer->first_holder[copy->expert]; s >= 0 && status == EPLB_OK;
         s = transfer->next_holder[s]) {
        if (is_readable(transfer, s) && distance(transfer, copy->gpu, s) == copy->source) {
            status = eplb_senders_add_choice(&transfer->senders, transfer->gpu[s], s,
                                             s == copy->source_slot, error);
        }
    }
    return status;
}

static void set_contents(eplb_transfer *transfer, int32_t slot, int32_t expert)
{
    int32_t old = transfer->contents[slot];
    int32_t next = transfer->next_holder[slot];
    int32_t previous = transfer->previous_holder[slot];
    if (old >= 0 && previous >= 0) {
        transfer->next_holder[previous] = next;
    } else if (old >= 0) {
        transfer->first_holder[old] = next;
    }
    if (old >= 0 && next >= 0) {
        transfer->previous_holder[next] = previous;
    }
    int32_t first = transfer->first_holder[expert];
    transfer->contents[slot] = expert;
    transfer->previous_holder[slot] = -1;
    transfer->next_holder[slot] = first;
    if (first >= 0) {
        transfer->previous_holder[first] = slot;
    }
    transfer->first_holder[expert] = slot;
}

/* Takes an expert that has come to a slot out of the GPU's other slots that it is to leave. */
static void drop_twins(eplb_transfer *transfer, int32_t slot)
{
    int32_t expert = transfer->map[slot];
    for (int32_t s = transfer->first_holder[expert]; s >= 0; s = transfer->next_holder[s]) {
        if (s != slot && transfer->gpu[s] == transfer->gpu[slot] && transfer->map[s] == expert &&
            transfer->target[s] != expert) {
            transfer->map[s] = -1;
            transfer->replicas[expert]--;
        }
    }
}

/* A slot has what was being written to it, and is in the map. */
static void arrive(eplb_transfer *transfer, int32_t slot)
{
    set_contents(transfer, slot, transfer->writing[slot]);
    transfer->map[slot] = transfer->writing[slot];
    transfer->writing[slot] = -1;
    transfer->is_lent[slot] = transfer->map[slot] != transfer->target[slot];
}

static eplb_status close_round(eplb_transfer *transfer, size_t during, bool commit,
                               eplb_error *error)
{
    eplb_migration *migration = transfer->migration;
    eplb_round_record round = {.layer = transfer->layer,
                               .commit = commit ? 1 : 0,
                               .first_copy = transfer->first_copy,
                               .copy_count =
                                   (int32_t)(migration->copy_count - transfer->first_copy),
                               .during = during,
                               .after = transfer->current_map};
    eplb_status status = EPLB_OK;
    for (size_t i = transfer->first_copy; i < migration->copy_count; i++) {
        if (migration->copies[i].source_slot >= 0) {
            transfer->is_read[migration->copies[i].source_slot] = false;
        }
    }
    if (round.after != during || commit) {
        status = eplb_migration_add_map(migration, transfer->map, error);
        round.after = migration->map_count - 1;
        transfer->current_map = round.after;
    }
    return status == EPLB_OK ? eplb_migration_add_round(migration, &round, error) : status;
}

static eplb_status offer_all(eplb_transfer *transfer, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    size_t end = transfer->migration->copy_count;
    for (size_t i = transfer->first_copy; i < end && status == EPLB_OK; i++) {
        status = offer_choices(transfer, i, error);
    }
    return status;
}

/* The copies of the round have come to their slots: the map that was in force meanwhile is
 * `during`. */
static eplb_status arrive_all(eplb_transfer *transfer, size_t *during, eplb_error *error)
{
    eplb_migration *migration = transfer->migration;
    eplb_status status = offer_all(transfer, error);
    if (status == EPLB_OK) {
        status = eplb_migration_add_map(migration, transfer->map, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    *during = migration->map_count - 1;
    for (size_t i = transfer->first_copy; i < migration->copy_count; i++) {
        arrive(transfer, migration->copies[i].slot);
        transfer->replicas[migration->copies[i].expert]++;
    }
    for (size_t i = transfer->first_copy; i < migration->copy_count; i++) {
        drop_twins(transfer, migration->copies[i].slot);
    }
    return EPLB_OK;
}

eplb_status eplb_transfer_end_round(eplb_transfer *transfer, eplb_error *error)
{
    if (transfer->migration->copy_count == transfer->first_copy) {
        return EPLB_OK;
    }
    size_t during;
    eplb_status status = arrive_all(transfer, &during, error);
    return status == EPLB_OK ? close_round(transfer, during, false, error) : status;
}

eplb_status eplb_transfer_end_mixed(eplb_transfer *transfer, int32_t count, eplb_error *error)
{
    size_t during;
    eplb_status status = arrive_all(transfer, &during, error);
    if (status != EPLB_OK) {
        return status;
    }
    for (int32_t i = 0; i < count; i++) {
        int32_t slot = transfer->batch[i];
        transfer->writing[slot] = transfer->target[slot];
        arrive(transfer, slot);
        transfer->replicas[transfer->map[slot]]++;
        drop_twins(transfer, slot);
    }
    return close_round(transfer, during, count > 0, error);
}

eplb_status eplb_transfer_end_staged(eplb_transfer *transfer, bool commit, eplb_error *error)
{
    size_t during = transfer->current_map;
    eplb_status status = offer_all(transfer, error);
    if (status != EPLB_OK) {
        return status;
    }
    for (int32_t i = 0; commit && i < transfer->batch_count; i++) {
        arrive(transfer, transfer->batch[i]);
    }
    for (int32_t i = 0; commit && i < transfer->batch_count; i++) {
        drop_twins(transfer, transfer->batch[i]);
    }
    return close_round(transfer, during, commit, error);
}
