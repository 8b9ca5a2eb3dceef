/* SPDX-License-Identifier: MIT */
#include "planner/bisection.h"

/* An interval this small, relatively, has nothing left. */
#define EXHAUSTED 1e-9

double eplb_bisection_next(eplb_bisection *self)
{
    if (self->high - self->low <= self->high * EXHAUSTED) {
        self->low = self->bound;
    }
    double part = self->round++ == 0 ? 0.25 : 0.5;
    double threshold = self->low + (self->high - self->low) * part;
    return self->high - threshold <= self->high * EXHAUSTED ? self->bound : threshold;
}

void eplb_bisection_update(eplb_bisection *self, double threshold, double best, bool reached)
{
    self->high = best < self->high ? best : self->high;
    self->low = reached ? self->low : threshold;
}
