/* SPDX-License-Identifier: MIT */
/* Who sends and who gets the copies of a schedule. */
#include <eplb/price.h>

#include <string.h>

#include "base/range.h"

static void count_copy(const eplb_copy *copy, eplb_gpu_copies *copies)
{
    switch (copy->source) {
    case EPLB_COPY_NODE:
        copies[copy->gpu].received_intra++;
        copies[copy->source_gpu].sent_intra++;
        break;
    case EPLB_COPY_REMOTE:
        copies[copy->gpu].received_inter++;
        copies[copy->source_gpu].sent_inter++;
        break;
    case EPLB_COPY_STORAGE:
        copies[copy->gpu].received_inter++;
        break;
    default: /* inside the GPU */
        break;
    }
}

eplb_status eplb_gpu_copies_count(const eplb_migration *migration, eplb_gpu_copies *copies,
                                  eplb_error *error)
{
    eplb_status status = eplb_check_given("copies", "schedule", migration, error);
    if (status == EPLB_OK) {
        status = eplb_check_given("copies", "output", copies, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    int32_t gpus = eplb_cluster_gpus(eplb_migration_cluster(migration));
    memset(copies, 0, (size_t)gpus * sizeof(*copies));
    for (int64_t r = 0; r < eplb_migration_rounds(migration) && status == EPLB_OK; r++) {
        eplb_round round = {.struct_size = sizeof(round)};
        status = eplb_migration_get_round(migration, r, &round, error);
        for (int32_t i = 0; i < round.copy_count; i++) {
            count_copy(&round.copies[i], copies);
        }
    }
    return status;
}
