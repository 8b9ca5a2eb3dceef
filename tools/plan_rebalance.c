/* SPDX-License-Identifier: MIT */
#include "plan_rebalance.h"

eplb_status plan_copy_price(const price_terms *terms, const plan_values *values,
                            const eplb_cluster *cluster, double *price, eplb_error *error)
{
    if (values->copy_price >= 0.0) {
        *price = values->copy_price;
        return EPLB_OK;
    }
    return price_of_copy(terms, cluster, price, error);
}

bool plan_looks_for_fewest(const plan_values *values)
{
    return values->ilp == ILP_ON && values->target_imbalance >= 0.0;
}

eplb_status plan_rebalance_create(eplb_plan **plan, const price_terms *terms,
                                  const plan_values *values, const eplb_load *load,
                                  const eplb_cluster *cluster, const eplb_placement *current,
                                  const eplb_plan_options *planning,
                                  const eplb_fewest_finder *fewest, const eplb_hooks *hooks,
                                  eplb_error *error)
{
    eplb_rebalance_options options;
    eplb_rebalance_options_init(&options);
    options.target_imbalance = values->target_imbalance;
    options.fewest = plan_looks_for_fewest(values) ? fewest : NULL;
    options.max_copies = values->max_copies;
    options.max_copies_per_layer = values->max_copies_per_layer;
    options.max_copies_per_gpu = values->max_copies_per_gpu;
    if (values->min_gain >= 0.0) {
        options.min_gain = values->min_gain;
    }
    eplb_status status = plan_copy_price(terms, values, cluster, &options.copy_price, error);
    return status == EPLB_OK ? eplb_rebalance_create(plan, hooks, load, cluster, current, planning,
                                                     &options, error)
                             : status;
}
