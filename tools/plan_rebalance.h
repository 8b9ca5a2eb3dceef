/* SPDX-License-Identifier: MIT */
#ifndef EPLB_TOOLS_PLAN_REBALANCE_H
#define EPLB_TOOLS_PLAN_REBALANCE_H

#include <eplb/rebalance.h>

#include "plan_options.h"

/* The price of a copy that the plan is made with. */
eplb_status plan_copy_price(const price_terms *terms, const plan_values *values,
                            const eplb_cluster *cluster, double *price, eplb_error *error);

/* Whether fewer copies are looked for by exact optimisation. */
bool plan_looks_for_fewest(const plan_values *values);

/* Plans from the placement in force, as the options ask for; `fewest` may be NULL. */
eplb_status plan_rebalance_create(eplb_plan **plan, const price_terms *terms,
                                  const plan_values *values, const eplb_load *load,
                                  const eplb_cluster *cluster, const eplb_placement *current,
                                  const eplb_plan_options *planning,
                                  const eplb_fewest_finder *fewest, const eplb_hooks *hooks,
                                  eplb_error *error);

#endif
