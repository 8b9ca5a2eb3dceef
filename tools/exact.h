/* SPDX-License-Identifier: MIT */
/* Exact optimisation, where this build has it: exact.c with libeplb-ilp, else no_exact.c. */
#ifndef EPLB_TOOLS_EXACT_H
#define EPLB_TOOLS_EXACT_H

#include <stdbool.h>

#include <eplb/fewest.h>
#include <eplb/hooks.h>
#include <eplb/refine.h>
#include <eplb/status.h>

typedef struct eplb_ilp exact; /* never looked into here */

/* everywhere: for all layers, not only those that a proof is likely for. nodes: of search trees for
 * a layer, -1: the library's default. A build without libeplb-ilp fails with
 * EPLB_ERROR_UNSUPPORTED, or with `everywhere` false warns and leaves *out NULL. */
eplb_status exact_open(exact **out, const eplb_hooks *hooks, bool everywhere, int32_t nodes,
                       eplb_error *error);

/* NULL for NULL. */
const eplb_refiner *exact_refiner(const exact *self);
const eplb_fewest_finder *exact_fewest_finder(const exact *self);

/* Sets the pointer to NULL. */
void exact_close(exact **self);

#endif
