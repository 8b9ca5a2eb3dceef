/* SPDX-License-Identifier: MIT */
/*
 * Slots of one GPU that wait for each other in a ring, by way of one buffer slot: the expert of the
 * first goes to the buffer, each slot is read into the one before it, and with the last of these
 * copies the buffer is committed. Meanwhile the first expert is not on the GPU: it must have
 * another replica.
 */
#include "migration/transfer.h"
#include "model/cluster.h"

/* The pending slot of the same GPU that has what a slot is to have; -1: there is none. */
static int32_t next_of(const eplb_transfer *transfer, int32_t slot)
{
    int32_t s = transfer->first_holder[transfer->target[slot]];
    while (s >= 0 &&
           (transfer->gpu[s] != transfer->gpu[slot] || !eplb_transfer_is_pending(transfer, s))) {
        s = transfer->next_holder[s];
    }
    return s;
}

/* The last slot of the ring that begins with a slot, which has `length` slots then; -1: none. */
static int32_t find_last(const eplb_transfer *transfer, int32_t first, int32_t *length)
{
    int32_t last = first;
    int32_t most = transfer->cluster->gpu[transfer->gpu[first]].slots;
    for (*length = 1; *length <= most; ++*length) {
        int32_t next = next_of(transfer, last);
        if (next == first && *length > 1) {
            return last;
        }
        if (next < 0 || next == first) {
            return -1;
        }
        last = next;
    }
    return -1;
}

/* Stages what a ring begins with, for the slot in which it ends. The first slot leaves the map with
 * the next round. */
static eplb_status open_ring(eplb_transfer *transfer, int32_t first, int32_t last,
                             eplb_error *error)
{
    bool added;
    eplb_status status =
        eplb_transfer_copy(transfer, last, transfer->target[last], 0, &added, error);
    transfer->ring[transfer->gpu[first]] = first;
    if (transfer->map[first] >= 0) {
        transfer->replicas[transfer->map[first]]--;
        transfer->map[first] = -1;
    }
    return status;
}

/* Rings, one on a GPU: the batch gets their last slots, `length` the slots of the longest. Copies
 * inside a GPU have no limits. */
static eplb_status open_rings(eplb_transfer *transfer, int32_t *count, int32_t *length,
                              eplb_error *error)
{
    eplb_status status = EPLB_OK;
    *count = 0;
    *length = 0;
    for (int32_t g = 0; g < transfer->cluster->gpus; g++) {
        transfer->ring[g] = -1;
    }
    eplb_transfer_begin_round(transfer);
    for (int32_t s = 0; s < transfer->slots && status == EPLB_OK; s++) {
        int32_t slots;
        int32_t last =
            transfer->ring[transfer->gpu[s]] < 0 && eplb_transfer_is_pending(transfer, s) &&
                    !eplb_transfer_must_keep(transfer, s) && eplb_transfer_is_spare(transfer, s)
                ? find_last(transfer, s, &slots)
                : -1;
        if (last >= 0) {
            status = open_ring(transfer, s, last, error);
            transfer->batch[(*count)++] = last;
            *length = slots > *length ? slots : *length;
        }
    }
    return status;
}

/* One copy in each ring that has not come to its end. */
static eplb_status turn_rings(eplb_transfer *transfer, int32_t count, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    eplb_transfer_begin_round(transfer);
    for (int32_t i = 0; i < count && status == EPLB_OK; i++) {
        int32_t *slot = &transfer->ring[transfer->gpu[transfer->batch[i]]];
        if (*slot != transfer->batch[i]) {
            int32_t next = next_of(transfer, *slot);
            bool added;
            status =
                eplb_transfer_copy(transfer, *slot, transfer->target[*slot], -1, &added, error);
            *slot = next;
        }
    }
    return status;
}

eplb_status eplb_transfer_exchange(eplb_transfer *transfer, eplb_error *error)
{
    int32_t count;
    int32_t length;
    if (transfer->migration->options.buffer_slots == 0) {
        return EPLB_OK;
    }
    eplb_status status = open_rings(transfer, &count, &length, error);
    if (status != EPLB_OK || count == 0) {
        return status;
    }
    status = eplb_transfer_end_staged(transfer, false, error);
    for (; length > 1 && status == EPLB_OK; length--) {
        status = turn_rings(transfer, count, error);
        if (status == EPLB_OK) {
            status = eplb_transfer_end_mixed(transfer, length == 2 ? count : 0, error);
        }
    }
    return status;
}
