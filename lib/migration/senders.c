/* SPDX-License-Identifier: MIT */
#include "migration/senders.h"

eplb_status eplb_senders_init(eplb_senders *senders, const eplb_hooks *hooks, int32_t gpus,
                              int32_t most, int32_t *sent, eplb_error *error)
{
    *senders = (eplb_senders){.hooks = hooks, .gpus = gpus, .most = most, .sent = sent};
    const eplb_array arrays[] = {EPLB_ARRAY(senders->place, (size_t)gpus),
                                 EPLB_ARRAY(senders->seen, (size_t)gpus)};
    return eplb_alloc_arrays(hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

void eplb_senders_free(eplb_senders *senders)
{
    void *arrays[] = {senders->place,   senders->seen,   senders->copies,
                      senders->choices, senders->places, senders->queue};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(senders->hooks, arrays[i]);
    }
}

void eplb_senders_clear(eplb_senders *senders)
{
    senders->search = 0;
    senders->copy_count = 0;
    senders->choice_count = 0;
    senders->place_count = 0;
    for (int32_t g = 0; g < senders->gpus; g++) {
        senders->place[g] = -1;
        senders->seen[g] = 0;
    }
}

void eplb_senders_begin(eplb_senders *senders)
{
    senders->round_place = senders->place_count;
}

eplb_status eplb_senders_add_copy(eplb_senders *senders, size_t copy, eplb_error *error)
{
    eplb_status status =
        eplb_migration_grow(senders->hooks, (void **)&senders->copies, &senders->copy_room,
                            senders->copy_count + 1, sizeof(*senders->copies), error);
    if (status == EPLB_OK) {
        senders->copies[senders->copy_count++] = (eplb_sent_copy){
            .copy = copy, .first_choice = senders->choice_count, .place = -1, .next = -1};
    }
    return status;
}

/* The GPU's place in the round that is being made: `place` gets it. */
static eplb_status place_of(eplb_senders *senders, int32_t gpu, int32_t *place, eplb_error *error)
{
    *place = senders->place[gpu];
    if (*place >= 0 && (size_t)*place >= senders->round_place) {
        return EPLB_OK;
    }
    if (senders->place_count >= INT32_MAX) {
        return eplb_out_of_memory(error);
    }
    eplb_status status =
        eplb_migration_grow(senders->hooks, (void **)&senders->places, &senders->place_room,
                            senders->place_count + 1, sizeof(*senders->places), error);
    if (status == EPLB_OK) {
        senders->places[senders->place_count] = (eplb_sending_place){.gpu = gpu, .next = *place};
        *place = (int32_t)senders->place_count++;
        senders->place[gpu] = *place;
    }
    return status;
}

eplb_status eplb_senders_add_choice(eplb_senders *senders, int32_t gpu, int32_t slot, bool chosen,
                                    eplb_error *error)
{
    int32_t place;
    eplb_status status = place_of(senders, gpu, &place, error);
    if (status == EPLB_OK) {
        status =
            eplb_migration_grow(senders->hooks, (void **)&senders->choices, &senders->choice_room,
                                senders->choice_count + 1, sizeof(*senders->choices), error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    senders->choices[senders->choice_count++] = (eplb_sender_choice){.slot = slot, .place = place};
    if (chosen) {
        senders->copies[senders->copy_count - 1].place = place;
        senders->places[place].sent++;
    }
    return EPLB_OK;
}

static size_t end_of_choices(const eplb_senders *senders, size_t copy)
{
    return copy + 1 < senders->copy_count ? senders->copies[copy + 1].first_choice
                                          : senders->choice_count;
}

/* Lists the copies of each place. */
static void list_copies(eplb_senders *senders)
{
    for (size_t p = 0; p < senders->place_count; p++) {
        senders->places[p].first_copy = -1;
    }
    for (size_t i = senders->copy_count; i-- > 0;) {
        eplb_sending_place *place = &senders->places[senders->copies[i].place];
        senders->copies[i].next = place->first_copy;
        place->first_copy = (int32_t)i;
    }
}

/* Puts a place that the search has not seen yet into the queue. */
static size_t visit(eplb_senders *senders, int32_t place, int32_t from, int32_t moved, size_t end)
{
    eplb_sending_place *p = &senders->places[place];
    if (p->seen == senders->search) {
        return end;
    }
    p->seen = senders->search;
    p->from = from;
    p->moved = moved;
    senders->queue[end] = place;
    return end + 1;
}

/* A GPU that has one copy too many can give one away in any round. */
static size_t visit_gpu(eplb_senders *senders, int32_t gpu, int32_t from, size_t end)
{
    if (senders->seen[gpu] == senders->search) {
        return end;
    }
    senders->seen[gpu] = senders->search;
    for (int32_t p = senders->place[gpu]; p >= 0; p = senders->places[p].next) {
        end = visit(senders, p, from, -1, end);
    }
    return end;
}

/* The nearest place to which a path leads and that takes one copy more, of a GPU that sends at
 * least two less than `gpu`; -1: there is none. */
static int32_t find_taker(eplb_senders *senders, int32_t gpu)
{
    senders->search++;
    size_t end = visit_gpu(senders, gpu, -1, 0);
    for (size_t i = 0; i < end; i++) {
        int32_t from = senders->queue[i];
        for (int32_t c = senders->places[from].first_copy; c >= 0; c = senders->copies[c].next) {
            size_t last = end_of_choices(senders, (size_t)c);
            for (size_t k = senders->copies[c].first_choice; k < last; k++) {
                int32_t to = senders->choices[k].place;
                size_t before = end;
                end = visit(senders, to, from, c, end);
                const eplb_sending_place *p = &senders->places[to];
                if (end == before || (senders->most >= 0 && p->sent >= senders->most)) {
                    continue;
                }
                if (senders->sent[p->gpu] <= senders->sent[gpu] - 2) {
                    return to;
                }
                end = visit_gpu(senders, p->gpu, to, end);
            }
        }
    }
    return -1;
}

static void move_along(eplb_senders *senders, int32_t taker)
{
    int32_t place = taker;
    int32_t first = taker;
    for (; place >= 0; place = senders->places[place].from) {
        int32_t moved = senders->places[place].moved;
        if (moved >= 0) {
            senders->places[senders->copies[moved].place].sent--;
            senders->places[place].sent++;
            senders->copies[moved].place = place;
        }
        first = place;
    }
    senders->sent[senders->places[first].gpu]--;
    senders->sent[senders->places[taker].gpu]++;
}

static int32_t busiest(const eplb_senders *senders)
{
    int32_t most = 0;
    for (int32_t g = 1; g < senders->gpus; g++) {
        most = senders->sent[g] > senders->sent[most] ? g : most;
    }
    return most;
}

static void write_sources(const eplb_senders *senders, eplb_migration *migration)
{
    for (size_t i = 0; i < senders->copy_count; i++) {
        const eplb_sent_copy *sent = &senders->copies[i];
        size_t k = sent->first_choice;
        while (senders->choices[k].place != sent->place) {
            k++;
        }
        migration->copies[sent->copy].source_gpu = senders->places[sent->place].gpu;
        migration->copies[sent->copy].source_slot = senders->choices[k].slot;
    }
}

eplb_status eplb_senders_level(eplb_senders *senders, eplb_migration *migration, eplb_error *error)
{
    eplb_status status =
        eplb_migration_grow(senders->hooks, (void **)&senders->queue, &senders->queue_room,
                            senders->place_count, sizeof(*senders->queue), error);
    if (status != EPLB_OK) {
        return status;
    }
    int32_t taker;
    do {
        list_copies(senders);
        int32_t gpu = busiest(senders);
        taker = senders->sent[gpu] > 1 ? find_taker(senders, gpu) : -1;
        if (taker >= 0) {
            move_along(senders, taker);
        }
    } while (taker >= 0);
    write_sources(senders, migration);
    return EPLB_OK;
}
