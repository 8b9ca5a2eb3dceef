/* SPDX-License-Identifier: MIT */
/* All of libeplb. Files are in eplb/format.h and libeplb-format. */
#ifndef EPLB_EPLB_H
#define EPLB_EPLB_H

#include <eplb/cluster.h>
#include <eplb/fewest.h>
#include <eplb/file.h>
#include <eplb/hooks.h>
#include <eplb/layer_budget.h>
#include <eplb/load.h>
#include <eplb/migration.h>
#include <eplb/placement.h>
#include <eplb/plan.h>
#include <eplb/price.h>
#include <eplb/random.h>
#include <eplb/rebalance.h>
#include <eplb/refine.h>
#include <eplb/router.h>
#include <eplb/shares.h>
#include <eplb/snapshot.h>
#include <eplb/split.h>
#include <eplb/status.h>
#include <eplb/step_stats.h>
#include <eplb/trigger.h>
#include <eplb/version.h>
#include <eplb/waits.h>
#include <eplb/window.h>

#endif
