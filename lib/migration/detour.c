/* SPDX-License-Identifier: MIT */
/*
 * Ways round. Where every pending slot holds the last replica of an expert, the slots wait for each
 * other in circles: a circle opens when one of its experts goes to a slot outside that can be
 * spared for a while.
 */
#include "migration/transfer.h"
#include "model/cluster.h"

/* Whether a slot is not in use, or can do without what it has. */
static bool can_lend(const eplb_transfer *transfer, int32_t slot)
{
    return transfer->can_lend[slot] && transfer->writing[slot] < 0 && !transfer->is_read[slot] &&
           !eplb_transfer_is_pending(transfer, slot) && !eplb_transfer_must_keep(transfer, slot) &&
           eplb_transfer_is_spare(transfer, slot);
}

/* Whether the expert may be on that GPU for a while. The slots that it shall have are looked at
 * only where the old map must stay until the commit: then it must not be there already. */
static bool is_welcome(const eplb_transfer *transfer, int32_t expert, int32_t slot, int32_t gpu)
{
    for (int32_t s = transfer->first_holder[expert]; s >= 0; s = transfer->next_holder[s]) {
        if (transfer->gpu[s] == gpu && (transfer->staged || s != slot)) {
            return false;
        }
    }
    for (int32_t s = transfer->first_wanted[expert]; s >= 0 && transfer->staged;
         s = transfer->next_wanted[s]) {
        if (transfer->gpu[s] == gpu) {
            return false;
        }
    }
    return true;
}

/* Copies that a way through a spare slot takes beyond the least: one to restore the slot, one where
 * neither half of the way is inside a GPU. */
static int32_t price(const eplb_transfer *transfer, int32_t slot, int32_t heir, int32_t spare)
{
    int32_t gpu = transfer->gpu[spare];
    return (transfer->target[spare] >= 0 ? 1 : 0) +
           (gpu != transfer->gpu[slot] && gpu != transfer->gpu[heir] ? 1 : 0);
}

/* The cheapest spare slot for the expert in `slot`, which is to come to `heir`; -1: there is none.
 */
static int32_t find_spare(const eplb_transfer *transfer, int32_t slot, int32_t heir)
{
    int32_t best = -1;
    for (int32_t s = 0; s < transfer->slots; s++) {
        if (can_lend(transfer, s) &&
            (best < 0 || price(transfer, slot, heir, s) < price(transfer, slot, heir, best)) &&
            is_welcome(transfer, transfer->map[slot], slot, transfer->gpu[s])) {
            best = s;
        }
    }
    return best;
}

/* The slot that is to have what a slot has now, where it is the last one that has it; else -1. */
static int32_t heir_of(const eplb_transfer *transfer, int32_t slot)
{
    int32_t expert = transfer->map[slot];
    if (!eplb_transfer_is_pending(transfer, slot) || expert < 0 ||
        transfer->replicas[expert] != 1 || eplb_transfer_must_keep(transfer, slot)) {
        return -1;
    }
    int32_t heir = transfer->first_wanted[expert];
    while (heir >= 0 && !eplb_transfer_is_pending(transfer, heir)) {
        heir = transfer->next_wanted[heir];
    }
    return heir;
}

/* One way round is enough for all that wait for each other. */
static void mark_circle(eplb_transfer *transfer, int32_t slot)
{
    while (slot >= 0 && !transfer->is_seen[slot]) {
        transfer->is_seen[slot] = true;
        slot = heir_of(transfer, slot);
    }
}

static eplb_status take(eplb_transfer *transfer, int32_t slot, int32_t spare, bool *taken,
                        eplb_error *error)
{
    if (!transfer->staged) {
        return eplb_transfer_copy(transfer, spare, transfer->map[slot], -1, taken, error);
    }
    *taken = eplb_transfer_stage(transfer, spare, transfer->map[slot]);
    return EPLB_OK;
}

eplb_status eplb_transfer_detour(eplb_transfer *transfer, bool *found, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    *found = false;
    memset(transfer->is_seen, 0, (size_t)transfer->slots * sizeof(*transfer->is_seen));
    eplb_transfer_begin_round(transfer);
    for (int32_t s = 0; s < transfer->slots && status == EPLB_OK; s++) {
        int32_t heir = transfer->is_seen[s] ? -1 : heir_of(transfer, s);
        int32_t spare = heir >= 0 ? find_spare(transfer, s, heir) : -1;
        bool taken = false;
        if (spare >= 0) {
            mark_circle(transfer, s);
            status = take(transfer, s, spare, &taken, error);
        }
        *found = *found || taken;
    }
    if (status != EPLB_OK || !*found) {
        return status;
    }
    return transfer->staged ? eplb_transfer_commit(transfer, error)
                            : eplb_transfer_end_round(transfer, error);
}
