/* SPDX-License-Identifier: MIT */
/* How good a placement with two slots a GPU can be at best, by prices that a linear program finds
 * and own arithmetic checks. */
#ifndef EPLB_ILP_PAIR_BOUND_H
#define EPLB_ILP_PAIR_BOUND_H

#include "ilp/pair_program.h"

/* Whether no placement keeps to the load that the program is set to, as far as linear programs
 * tell. Leaves their prices at hand. */
eplb_status eplb_pair_refute(eplb_pair_program *program, bool *is_refuted, eplb_error *error);

/*
 * Raises `low`, a lower bound of the largest GPU load, towards `high`, above which none is looked
 * for, to within the relative tolerance. `bound` gets it.
 */
eplb_status eplb_pair_bound(eplb_pair_program *program, double low, double high, double tolerance,
                            double *bound, eplb_error *error);

#endif
