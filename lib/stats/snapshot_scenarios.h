/* SPDX-License-Identifier: MIT */
#ifndef EPLB_STATS_SNAPSHOT_SCENARIOS_H
#define EPLB_STATS_SNAPSHOT_SCENARIOS_H

#include <eplb/snapshot.h>

/* What a call that makes scenarios was given, checked and complete. */
typedef struct eplb_snapshot_request {
    const eplb_snapshot *const *snapshots;
    int32_t count;
    eplb_snapshot_load_options options;
} eplb_snapshot_request;

eplb_status eplb_snapshot_request_make(eplb_snapshot_request *r,
                                       const eplb_snapshot *const *snapshots, int32_t count,
                                       const eplb_snapshot_load_options *options,
                                       eplb_error *error);

/* As eplb_snapshot_list_scenarios; returns how many there are. */
int32_t eplb_snapshot_request_list(const eplb_snapshot_request *r,
                                   eplb_snapshot_scenario *scenarios, int32_t capacity);

#endif
