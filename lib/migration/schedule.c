/* SPDX-License-Identifier: MIT */
#include "migration/schedule.h"

eplb_status eplb_migration_grow(const eplb_hooks *hooks, void **items, size_t *room, size_t needed,
                                size_t size, eplb_error *error)
{
    if (needed <= *room) {
        return EPLB_OK;
    }
    size_t grown = needed > SIZE_MAX / 2 ? needed : 2 * needed;
    void *moved = eplb_realloc(hooks, *items, grown, size);
    if (moved == NULL) {
        return eplb_out_of_memory(error);
    }
    *items = moved;
    *room = grown;
    return EPLB_OK;
}

eplb_status eplb_migration_add_copy(eplb_migration *migration, const eplb_copy *copy,
                                    eplb_error *error)
{
    eplb_status status =
        eplb_migration_grow(&migration->hooks, (void **)&migration->copies, &migration->copy_room,
                            migration->copy_count + 1, sizeof(*migration->copies), error);
    if (status == EPLB_OK) {
        migration->copies[migration->copy_count++] = *copy;
    }
    return status;
}

eplb_status eplb_migration_add_map(eplb_migration *migration, const int32_t *map, eplb_error *error)
{
    size_t slots = (size_t)migration->slots;
    size_t size;
    if (!eplb_size_mul(slots, sizeof(*map), &size)) {
        return eplb_out_of_memory(error);
    }
    eplb_status status =
        eplb_migration_grow(&migration->hooks, (void **)&migration->maps, &migration->map_room,
                            migration->map_count + 1, size, error);
    if (status == EPLB_OK) {
        memcpy(eplb_migration_map(migration, migration->map_count++), map, size);
    }
    return status;
}

eplb_status eplb_migration_add_round(eplb_migration *migration, const eplb_round_record *round,
                                     eplb_error *error)
{
    eplb_status status =
        eplb_migration_grow(&migration->hooks, (void **)&migration->rounds, &migration->round_room,
                            migration->round_count + 1, sizeof(*migration->rounds), error);
    if (status == EPLB_OK) {
        migration->rounds[migration->round_count++] = *round;
    }
    return status;
}

/* Copies by GPU, in one round and in all. */
typedef struct tally {
    int32_t *sent; /* [gpus] each, as the rest */
    int32_t *received;
    int64_t *sent_all;
    int64_t *received_all;
} tally;

static void count_copy(eplb_migration_info *info, const eplb_copy *copy, const tally *by_gpu)
{
    int64_t *kinds[] = {&info->local_copies, &info->node_copies, &info->remote_copies,
                        &info->storage_copies};
    ++*kinds[copy->source];
    if (copy->source == EPLB_COPY_LOCAL) {
        return;
    }
    int32_t received = ++by_gpu->received[copy->gpu];
    int64_t received_all = ++by_gpu->received_all[copy->gpu];
    info->most_received = received > info->most_received ? received : info->most_received;
    info->most_received_all =
        received_all > info->most_received_all ? received_all : info->most_received_all;
    if (copy->source == EPLB_COPY_STORAGE) {
        return;
    }
    int32_t sent = ++by_gpu->sent[copy->source_gpu];
    int64_t sent_all = ++by_gpu->sent_all[copy->source_gpu];
    info->most_sent = sent > info->most_sent ? sent : info->most_sent;
    info->most_sent_all = sent_all > info->most_sent_all ? sent_all : info->most_sent_all;
}

static void count_round(eplb_migration_info *info, const eplb_migration *migration,
                        const eplb_round_record *round, const tally *by_gpu)
{
    const eplb_copy *copies = eplb_migration_copies(migration, round);
    int32_t count = 0;
    for (int32_t i = 0; i < round->copy_count; i++) {
        by_gpu->received[copies[i].gpu] = 0;
        if (copies[i].source_gpu >= 0) {
            by_gpu->sent[copies[i].source_gpu] = 0;
        }
    }
    for (int32_t i = 0; i < round->copy_count; i++) {
        count_copy(info, &copies[i], by_gpu);
        count += copies[i].source != EPLB_COPY_LOCAL ? 1 : 0;
        info->buffer_slots =
            copies[i].buffer >= info->buffer_slots ? copies[i].buffer + 1 : info->buffer_slots;
    }
    info->most_copies = count > info->most_copies ? count : info->most_copies;
}

eplb_status eplb_migration_count(eplb_migration *migration, eplb_error *error)
{
    size_t gpus = (size_t)eplb_cluster_gpus(migration->cluster);
    tally by_gpu = {0};
    const eplb_array arrays[] = {
        EPLB_ARRAY(by_gpu.sent, gpus),
        EPLB_ARRAY(by_gpu.received, gpus),
        EPLB_ARRAY(by_gpu.sent_all, gpus),
        EPLB_ARRAY(by_gpu.received_all, gpus),
    };
    size_t count = sizeof(arrays) / sizeof(arrays[0]);
    eplb_migration_info *info = &migration->info;
    eplb_status status = eplb_alloc_arrays(&migration->hooks, arrays, count, error);
    if (status == EPLB_OK) {
        info->rounds = (int64_t)migration->round_count;
        for (size_t r = 0; r < migration->round_count; r++) {
            count_round(info, migration, &migration->rounds[r], &by_gpu);
        }
        for (int32_t l = 0; l < migration->layers; l++) {
            info->layers_changed += migration->first_round[l + 1] > migration->first_round[l];
        }
    }
    for (size_t i = 0; i < count; i++) {
        eplb_free(&migration->hooks, *arrays[i].memory);
    }
    return status;
}
