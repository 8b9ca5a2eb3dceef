/* SPDX-License-Identifier: MIT */
#include "summary.h"

#include "output.h"

void summary_add(summary *self, double value)
{
    self->mean += value;
    self->worst = value > self->worst ? value : self->worst;
}

void summary_finish(summary *self, int32_t count)
{
    if (count > 0) {
        self->mean /= (double)count;
    }
}

void json_add_summary(cJSON *object, const char *name, bool exists, const summary *self)
{
    cJSON *both = cJSON_AddObjectToObject(object, name);
    json_add_number(both, "mean", exists, self->mean);
    json_add_number(both, "worst", exists, self->worst);
}
