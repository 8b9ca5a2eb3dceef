/* SPDX-License-Identifier: MIT */
#include "migration/transfer.h"

#include "model/placement.h"

eplb_status eplb_transfer_init(eplb_transfer *transfer, eplb_migration *migration,
                               const eplb_placement *from, const eplb_placement *to,
                               eplb_error *error)
{
    size_t slots = (size_t)migration->slots;
    size_t experts = (size_t)migration->experts;
    size_t gpus = (size_t)migration->cluster->gpus;
    *transfer = (eplb_transfer){.migration = migration,
                                .from = from,
                                .to = to,
                                .cluster = migration->cluster,
                                .staged = migration->options.mode == EPLB_MIGRATION_STAGED,
                                .slots = migration->slots,
                                .experts = migration->experts};
    transfer->senders.hooks = &migration->hooks;
    const eplb_array arrays[] = {
        EPLB_ARRAY(transfer->gpu, slots),
        EPLB_ARRAY(transfer->target, slots),
        EPLB_ARRAY(transfer->map, slots),
        EPLB_ARRAY(transfer->contents, slots),
        EPLB_ARRAY(transfer->writing, slots),
        EPLB_ARRAY(transfer->is_read, slots),
        EPLB_ARRAY(transfer->is_lent, slots),
        EPLB_ARRAY(transfer->can_lend, slots),
        EPLB_ARRAY(transfer->is_seen, slots),
        EPLB_ARRAY(transfer->next_wanted, slots),
        EPLB_ARRAY(transfer->next_holder, slots),
        EPLB_ARRAY(transfer->previous_holder, slots),
        EPLB_ARRAY(transfer->batch, slots),
        EPLB_ARRAY(transfer->first_wanted, experts),
        EPLB_ARRAY(transfer->first_holder, experts),
        EPLB_ARRAY(transfer->replicas, experts),
        EPLB_ARRAY(transfer->sent, gpus),
        EPLB_ARRAY(transfer->received, gpus),
        EPLB_ARRAY(transfer->sent_in_layer, gpus),
        EPLB_ARRAY(transfer->sent_in_all, gpus),
        EPLB_ARRAY(transfer->buffered, gpus),
        EPLB_ARRAY(transfer->ring, gpus),
    };
    eplb_status status =
        eplb_alloc_arrays(&migration->hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
    if (status == EPLB_OK) {
        status = eplb_senders_init(&transfer->senders, &migration->hooks, migration->cluster->gpus,
                                   migration->options.max_sends, transfer->sent_in_layer, error);
    }
    for (int32_t g = 0; g < migration->cluster->gpus && status == EPLB_OK; g++) {
        for (int32_t s = transfer->cluster->first_slot[g]; s < transfer->cluster->first_slot[g + 1];
             s++) {
            transfer->gpu[s] = g;
        }
    }
    return status;
}

void eplb_transfer_free(eplb_transfer *transfer)
{
    void *arrays[] = {
        transfer->gpu,           transfer->target,       transfer->map,
        transfer->contents,      transfer->writing,      transfer->is_read,
        transfer->is_lent,       transfer->can_lend,     transfer->is_seen,
        transfer->next_wanted,   transfer->next_holder,  transfer->previous_holder,
        transfer->batch,         transfer->first_wanted, transfer->first_holder,
        transfer->replicas,      transfer->sent,         transfer->received,
        transfer->sent_in_layer, transfer->sent_in_all,  transfer->buffered,
        transfer->ring,
    };
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(&transfer->migration->hooks, arrays[i]);
    }
    eplb_senders_free(&transfer->senders);
}

/* Whether what a placement has on a GPU exists. */
static bool is_alive(const eplb_transfer *transfer, int32_t gpu)
{
    return transfer->from->cluster->gpu[gpu].alive && transfer->to->cluster->gpu[gpu].alive;
}

/* Both rows in the numbers of the migration's slots. */
static void read_rows(eplb_transfer *transfer, int32_t gpu)
{
    const int32_t *from = eplb_placement_row(transfer->from, transfer->layer);
    const int32_t *to = eplb_placement_row(transfer->to, transfer->layer);
    int32_t from_first = transfer->from->cluster->first_slot[gpu];
    int32_t to_first = transfer->to->cluster->first_slot[gpu];
    int32_t from_end = eplb_placement_open_end(transfer->from, transfer->layer, gpu);
    int32_t to_end = eplb_placement_open_end(transfer->to, transfer->layer, gpu);
    int32_t first = transfer->cluster->first_slot[gpu];
    for (int32_t i = 0; i < transfer->cluster->gpu[gpu].slots; i++) {
        bool is_old = from_first + i < from_end && is_alive(transfer, gpu);
        bool is_new = to_first + i < to_end && transfer->to->cluster->gpu[gpu].alive;
        transfer->map[first + i] = is_old ? from[from_first + i] : -1;
        transfer->target[first + i] = is_new ? to[to_first + i] : -1;
        transfer->can_lend[first + i] = is_new;
    }
}

static void clear(eplb_transfer *transfer, int32_t layer)
{
    transfer->layer = layer;
    transfer->layer_id = eplb_placement_layer_ids(transfer->to)[layer];
    transfer->batch_count = 0;
    for (int32_t g = 0; g < transfer->cluster->gpus; g++) {
        read_rows(transfer, g);
        transfer->sent_in_layer[g] = 0;
        transfer->buffered[g] = 0;
    }
    for (int32_t e = 0; e < transfer->experts; e++) {
        transfer->first_wanted[e] = -1;
        transfer->first_holder[e] = -1;
        transfer->replicas[e] = 0;
    }
    eplb_senders_clear(&transfer->senders);
}

static void link_slot(eplb_transfer *transfer, int32_t slot)
{
    int32_t expert = transfer->map[slot];
    int32_t target = transfer->target[slot];
    transfer->contents[slot] = expert;
    transfer->writing[slot] = -1;
    transfer->is_read[slot] = false;
    transfer->is_lent[slot] = false;
    if (expert >= 0) {
        transfer->replicas[expert]++;
        transfer->previous_holder[slot] = -1;
        transfer->next_holder[slot] = transfer->first_holder[expert];
        if (transfer->first_holder[expert] >= 0) {
            transfer->previous_holder[transfer->first_holder[expert]] = slot;
        }
        transfer->first_holder[expert] = slot;
    }
    if (target >= 0) {
        transfer->next_wanted[slot] = transfer->first_wanted[target];
        transfer->first_wanted[target] = slot;
    }
}

static int32_t count_pending(const eplb_transfer *transfer)
{
    int32_t count = 0;
    for (int32_t s = 0; s < transfer->slots; s++) {
        count += eplb_transfer_is_pending(transfer, s) ? 1 : 0;
    }
    return count;
}

bool eplb_transfer_must_keep(const eplb_transfer *transfer, int32_t slot)
{
    int32_t expert = transfer->map[slot];
    if (!transfer->is_lent[slot] || expert < 0) {
        return false;
    }
    for (int32_t s = transfer->first_wanted[expert]; s >= 0; s = transfer->next_wanted[s]) {
        if (transfer->map[s] == expert || transfer->writing[s] == expert) {
            return false;
        }
    }
    return true;
}

/* Whether an expert that is nowhere is being read from storage: once is enough. */
static bool is_coming(const eplb_transfer *transfer, int32_t expert)
{
    if (transfer->first_holder[expert] >= 0) {
        return false;
    }
    int32_t s = transfer->first_wanted[expert];
    while (s >= 0 && transfer->writing[s] != expert) {
        s = transfer->next_wanted[s];
    }
    return s >= 0;
}

bool eplb_transfer_may_write(const eplb_transfer *transfer, int32_t slot)
{
    return eplb_transfer_is_pending(transfer, slot) && transfer->writing[slot] < 0 &&
           !eplb_transfer_must_keep(transfer, slot) && !is_coming(transfer, transfer->target[slot]);
}

int32_t eplb_transfer_rank(const eplb_transfer *transfer, int32_t slot)
{
    int32_t expert = transfer->target[slot];
    return transfer->first_holder[expert] < 0 ? 0 : transfer->replicas[expert] <= 1 ? 1 : 2;
}

int32_t eplb_transfer_local_heir(const eplb_transfer *transfer, int32_t slot)
{
    int32_t expert = transfer->contents[slot];
    int32_t gpu = transfer->gpu[slot];
    if (expert < 0) {
        return -1;
    }
    int32_t heir = transfer->first_wanted[expert];
    while (heir >= 0 &&
           (transfer->gpu[heir] != gpu || heir == slot || transfer->writing[heir] >= 0 ||
            !eplb_transfer_is_pending(transfer, heir))) {
        heir = transfer->next_wanted[heir];
    }
    for (int32_t s = transfer->first_holder[expert]; s >= 0 && heir >= 0;
         s = transfer->next_holder[s]) {
        if (s != slot && transfer->gpu[s] == gpu && transfer->writing[s] < 0) {
            return -1;
        }
    }
    return heir;
}

/* Copies straight into slots up to a rank; `sparing`: into none that another slot of the GPU still
 * has to be read from. */
static eplb_status write_rank(eplb_transfer *transfer, int32_t rank, bool sparing,
                              eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t s = 0; s < transfer->slots && status == EPLB_OK; s++) {
        if (eplb_transfer_may_write(transfer, s) && eplb_transfer_rank(transfer, s) <= rank &&
            !transfer->is_read[s] && eplb_transfer_is_spare(transfer, s) &&
            !(sparing && eplb_transfer_local_heir(transfer, s) >= 0)) {
            bool added;
            status = eplb_transfer_copy(transfer, s, transfer->target[s], -1, &added, error);
        }
    }
    return status;
}

/* A round of copies straight into slots, as many as there can be. Experts that are nowhere do not
 * wait. */
static eplb_status write_slots(eplb_transfer *transfer, bool sparing, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    eplb_transfer_begin_round(transfer);
    for (int32_t rank = 0; rank < EPLB_TRANSFER_RANKS && status == EPLB_OK; rank++) {
        status = write_rank(transfer, rank, sparing, error);
        if (status == EPLB_OK && sparing && rank == 0) {
            status = write_rank(transfer, rank, false, error);
        }
    }
    return status == EPLB_OK ? eplb_transfer_end_round(transfer, error) : status;
}

/* Rounds in one of the ways that need no copy more than the least, then (not `sparing`) in one
 * that may overwrite what has to come from another GPU then; none where nothing can be done. */
static eplb_status advance_directly(eplb_transfer *transfer, bool sparing, eplb_error *error)
{
    size_t before = transfer->migration->round_count;
    eplb_status status = transfer->staged ? EPLB_OK : write_slots(transfer, sparing, error);
    if (status != EPLB_OK || transfer->migration->round_count > before) {
        return status;
    }
    eplb_transfer_choose(transfer, sparing);
    if (transfer->batch_count > 0) {
        return eplb_transfer_commit(transfer, error);
    }
    return sparing && !transfer->staged ? eplb_transfer_exchange(transfer, error) : EPLB_OK;
}

/* One round, or a batch of them, in the best way that there is. */
static eplb_status advance(eplb_transfer *transfer, eplb_error *error)
{
    size_t before = transfer->migration->round_count;
    bool can_spare = transfer->is_sparing &&
                     (!transfer->staged || transfer->migration->options.buffer_slots != 1);
    eplb_status status = can_spare ? advance_directly(transfer, true, error) : EPLB_OK;
    if (status == EPLB_OK && transfer->migration->round_count == before) {
        status = advance_directly(transfer, false, error);
    }
    if (status != EPLB_OK || transfer->migration->round_count > before) {
        return status;
    }
    bool found;
    status = eplb_transfer_detour(transfer, &found, error);
    return status == EPLB_OK && !found ? eplb_transfer_refuse(transfer, error) : status;
}

/* In the end the map is `to`: slots that shall be empty leave it. */
static eplb_status finish(eplb_transfer *transfer, eplb_error *error)
{
    eplb_migration *migration = transfer->migration;
    size_t size = (size_t)transfer->slots * sizeof(int32_t);
    if (memcmp(transfer->map, transfer->target, size) == 0) {
        return EPLB_OK;
    }
    if (migration->round_count > migration->first_round[transfer->layer]) {
        memcpy(eplb_migration_map(migration, transfer->current_map), transfer->target, size);
        return EPLB_OK;
    }
    eplb_status status = eplb_migration_add_map(migration, transfer->target, error);
    eplb_round_record round = {.layer = transfer->layer,
                               .first_copy = migration->copy_count,
                               .during = transfer->current_map,
                               .after = migration->map_count - 1};
    return status == EPLB_OK ? eplb_migration_add_round(migration, &round, error) : status;
}

static eplb_status make_layer(eplb_transfer *transfer, int32_t layer, eplb_error *error)
{
    eplb_migration *migration = transfer->migration;
    size_t first_copy = migration->copy_count;
    clear(transfer, layer);
    for (int32_t s = transfer->slots - 1; s >= 0; s--) { /* so that lists ascend */
        link_slot(transfer, s);
    }
    eplb_status status = eplb_migration_add_map(migration, transfer->map, error);
    transfer->current_map = migration->map_count - 1;
    migration->start[layer] = transfer->current_map;
    migration->first_round[layer] = migration->round_count;
    int32_t pending = count_pending(transfer);
    migration->info.extra_copies -= pending;
    for (; pending > 0 && status == EPLB_OK; pending = count_pending(transfer)) {
        status = advance(transfer, error);
    }
    if (status == EPLB_OK) {
        status = eplb_senders_level(&transfer->senders, migration, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    for (int32_t g = 0; g < transfer->cluster->gpus; g++) {
        transfer->sent_in_all[g] += transfer->sent_in_layer[g];
    }
    migration->info.extra_copies += (int64_t)(migration->copy_count - first_copy);
    return finish(transfer, error);
}

eplb_status eplb_transfer_layer(eplb_transfer *transfer, int32_t layer, eplb_error *error)
{
    eplb_migration *migration = transfer->migration;
    const eplb_migration before = *migration;
    transfer->is_sparing = true;
    eplb_status status = make_layer(transfer, layer, error);
    if (status != EPLB_ERROR_INFEASIBLE) {
        return status;
    }
    migration->copy_count = before.copy_count;
    migration->round_count = before.round_count;
    migration->map_count = before.map_count;
    migration->info = before.info;
    transfer->is_sparing = false;
    return make_layer(transfer, layer, error);
}
