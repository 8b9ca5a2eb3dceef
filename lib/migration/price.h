/* SPDX-License-Identifier: MIT */
#ifndef EPLB_MIGRATION_PRICE_H
#define EPLB_MIGRATION_PRICE_H

#include <eplb/price.h>

/* Writes payoff->text from the rest of it. */
void eplb_payoff_describe(eplb_payoff *payoff, const eplb_price_options *options);

#endif
