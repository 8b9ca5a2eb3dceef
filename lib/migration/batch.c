/* SPDX-License-Identifier: MIT */
/*
 * Slots that are committed at once. After the commit every expert must have a replica, and none be
 * twice on a GPU for a slot that is still to be written; so a slot may bring others with it.
 */
#include "migration/transfer.h"
#include "model/cluster.h"

static bool add_slot(eplb_transfer *transfer, int32_t slot, int32_t expert, int32_t most)
{
    int32_t *buffered = &transfer->buffered[transfer->gpu[slot]];
    if (most >= 0 && *buffered >= most) {
        return false;
    }
    ++*buffered;
    transfer->writing[slot] = expert;
    transfer->replicas[expert]++;
    if (transfer->map[slot] >= 0) {
        transfer->replicas[transfer->map[slot]]--;
    }
    transfer->batch[transfer->batch_count++] = slot;
    return true;
}

bool eplb_transfer_stage(eplb_transfer *transfer, int32_t slot, int32_t expert)
{
    return add_slot(transfer, slot, expert, transfer->migration->options.buffer_slots);
}

/* Takes the last slots out of the batch again, down to `count`. */
static void shorten(eplb_transfer *transfer, int32_t count)
{
    while (transfer->batch_count > count) {
        int32_t slot = transfer->batch[--transfer->batch_count];
        transfer->buffered[transfer->gpu[slot]]--;
        transfer->replicas[transfer->writing[slot]]--;
        transfer->writing[slot] = -1;
        if (transfer->map[slot] >= 0) {
            transfer->replicas[transfer->map[slot]]++;
        }
    }
}

/* Brings a slot in which the expert that is overwritten in `slot` lives on, where no other does.
 * Best is one whose own expert lives on without more. */
static bool bring_heir(eplb_transfer *transfer, int32_t slot, int32_t most)
{
    int32_t expert = transfer->map[slot];
    if (expert < 0 || transfer->replicas[expert] > 0) {
        return true;
    }
    int32_t heir = -1;
    for (int32_t s = transfer->first_wanted[expert]; s >= 0; s = transfer->next_wanted[s]) {
        bool fits = most < 0 || transfer->buffered[transfer->gpu[s]] < most;
        bool is_last = eplb_transfer_is_spare(transfer, s);
        if (fits && (heir < 0 || is_last) && eplb_transfer_may_write(transfer, s)) {
            heir = s;
            if (is_last) {
                break;
            }
        }
    }
    return heir >= 0 && add_slot(transfer, heir, expert, most);
}

/* Brings the slots of the GPU that hold the expert of `slot` now and are to get another one. */
static bool bring_twins(eplb_transfer *transfer, int32_t slot, int32_t most)
{
    int32_t expert = transfer->writing[slot];
    for (int32_t s = transfer->first_holder[expert]; s >= 0; s = transfer->next_holder[s]) {
        bool is_twin = s != slot && transfer->gpu[s] == transfer->gpu[slot] &&
                       transfer->map[s] == expert && transfer->writing[s] < 0 &&
                       eplb_transfer_is_pending(transfer, s);
        if (is_twin && (!eplb_transfer_may_write(transfer, s) ||
                        !add_slot(transfer, s, transfer->target[s], most))) {
            return false;
        }
    }
    return true;
}

/* Brings the slot of the GPU that waits for what `slot` holds: later it would have to come from
 * another GPU. */
static bool bring_local_heir(eplb_transfer *transfer, int32_t slot, int32_t most)
{
    int32_t heir = eplb_transfer_local_heir(transfer, slot);
    return heir < 0 || (eplb_transfer_may_write(transfer, heir) &&
                        add_slot(transfer, heir, transfer->target[heir], most));
}

/* Adds a slot and what must come with it; nothing where the buffer does not hold them. */
static bool add_with_followers(eplb_transfer *transfer, int32_t slot, int32_t most, bool sparing)
{
    int32_t before = transfer->batch_count;
    bool fits = add_slot(transfer, slot, transfer->target[slot], most);
    for (int32_t i = before; fits && i < transfer->batch_count; i++) {
        fits = bring_heir(transfer, transfer->batch[i], most) &&
               bring_twins(transfer, transfer->batch[i], most) &&
               (!sparing || bring_local_heir(transfer, transfer->batch[i], most));
    }
    if (!fits) {
        shorten(transfer, before);
    }
    return fits;
}

static void choose_rank(eplb_transfer *transfer, int32_t rank, bool sparing)
{
    int32_t most = transfer->migration->options.buffer_slots;
    for (int32_t s = 0; s < transfer->slots; s++) {
        if (eplb_transfer_may_write(transfer, s) && eplb_transfer_rank(transfer, s) <= rank) {
            (void)add_with_followers(transfer, s, most, sparing);
        }
    }
}

void eplb_transfer_choose(eplb_transfer *transfer, bool sparing)
{
    for (int32_t rank = 0; rank < EPLB_TRANSFER_RANKS; rank++) {
        choose_rank(transfer, rank, sparing);
        if (sparing && rank == 0) {
            choose_rank(transfer, rank, false);
        }
    }
}

/* One round of the batch: slots from `done` on are left; those copied are moved before them. */
static eplb_status fill_buffers(eplb_transfer *transfer, int32_t *done, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    eplb_transfer_begin_round(transfer);
    for (int32_t i = *done; i < transfer->batch_count && status == EPLB_OK; i++) {
        int32_t slot = transfer->batch[i];
        int32_t gpu = transfer->gpu[slot];
        bool added;
        status = eplb_transfer_copy(transfer, slot, transfer->writing[slot],
                                    transfer->buffered[gpu], &added, error);
        if (status == EPLB_OK && added) {
            transfer->buffered[gpu]++;
            transfer->batch[i] = transfer->batch[*done];
            transfer->batch[(*done)++] = slot;
        }
    }
    return status;
}

eplb_status eplb_transfer_commit(eplb_transfer *transfer, eplb_error *error)
{
    int32_t done = 0;
    eplb_status status = EPLB_OK;
    memset(transfer->buffered, 0, (size_t)transfer->cluster->gpus * sizeof(*transfer->buffered));
    while (done < transfer->batch_count && status == EPLB_OK) {
        status = fill_buffers(transfer, &done, error);
        if (status == EPLB_OK) {
            status = eplb_transfer_end_staged(transfer, done == transfer->batch_count, error);
        }
    }
    memset(transfer->buffered, 0, (size_t)transfer->cluster->gpus * sizeof(*transfer->buffered));
    transfer->batch_count = 0;
    return status;
}

/* Buffer slots that the GPU with most slots to be written needs when the layer is committed at
 * once, which can always be done; `gpu` gets that GPU. */
static int32_t whole_layer(const eplb_transfer *transfer, int32_t *gpu)
{
    const eplb_migration *migration = transfer->migration;
    const int32_t *start = eplb_migration_map(migration, migration->start[transfer->layer]);
    int32_t most = 0;
    int32_t count = 0;
    for (int32_t s = 0; s < transfer->slots; s++) {
        bool is_first = s == 0 || transfer->gpu[s] != transfer->gpu[s - 1];
        bool is_written = transfer->target[s] >= 0 && transfer->target[s] != start[s];
        count = (is_first ? 0 : count) + (is_written ? 1 : 0);
        if (count > most) {
            most = count;
            *gpu = transfer->gpu[s];
        }
    }
    return most;
}

/* Ways round have led to where slots cannot be told apart any more. */
static eplb_status refuse_layer(const eplb_transfer *transfer, eplb_error *error)
{
    int32_t gpu = 0;
    int32_t most = whole_layer(transfer, &gpu);
    return eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                          "layer %d: slots wait for each other and none is spare; %d buffer slot%s "
                          "on GPU %d %s enough for all of them, not %d",
                          transfer->layer_id, most, most == 1 ? "" : "s", gpu,
                          most == 1 ? "is" : "are", transfer->migration->options.buffer_slots);
}

eplb_status eplb_transfer_refuse(eplb_transfer *transfer, eplb_error *error)
{
    int32_t slot = 0;
    while (slot < transfer->slots && (!eplb_transfer_may_write(transfer, slot) ||
                                      !add_with_followers(transfer, slot, -1, false))) {
        slot++;
    }
    if (slot == transfer->slots) {
        return refuse_layer(transfer, error);
    }
    int32_t worst = 0;
    for (int32_t g = 1; g < transfer->cluster->gpus; g++) {
        worst = transfer->buffered[g] > transfer->buffered[worst] ? g : worst;
    }
    int32_t most = transfer->buffered[worst];
    return eplb_error_set(
        error, EPLB_ERROR_INFEASIBLE,
        "layer %d: expert %d for slot %d of GPU %d: %d slots wait for each other "
        "and none is spare; %d buffer slot%s on GPU %d %s enough for them, not %d",
        transfer->layer_id, transfer->target[slot], slot, transfer->gpu[slot],
        transfer->batch_count, most, most == 1 ? "" : "s", worst, most == 1 ? "is" : "are",
        transfer->migration->options.buffer_slots);
}
