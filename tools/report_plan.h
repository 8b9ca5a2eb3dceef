/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_REPORT_PLAN_H
#define EPLB_TOOLS_REPORT_PLAN_H

#include "report_source.h"

/* Plans for the summed load of a source, from the placement that it is judged under. */
eplb_status plan_source(eplb_plan **plan, const report_source *source, const eplb_cluster *cluster,
                        eplb_error *error);

#endif
