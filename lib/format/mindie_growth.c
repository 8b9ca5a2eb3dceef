/* SPDX-License-Identifier: MIT */
#include "format/mindie_growth.h"

/* Of counts that are no sums each part grows by chance, half of the time. */
#define LEAST_RISES 16

bool eplb_mindie_growth_add(eplb_mindie_growth *growth, const eplb_hooks *hooks,
                            const double *values, int32_t length)
{
    if (growth->rows == growth->capacity) {
        int32_t capacity = growth->capacity > 0 ? 2 * growth->capacity : 64;
        void *parts = eplb_realloc(hooks, growth->parts, (size_t)capacity, sizeof(*growth->parts));
        if (parts == NULL) {
            return false;
        }
        growth->parts = parts;
        growth->capacity = capacity;
    }
    double *parts = growth->parts[growth->rows++];
    memset(parts, 0, sizeof(*growth->parts));
    for (int32_t i = 0; i < length; i++) {
        parts[i % EPLB_GROWTH_PARTS] += values[i];
    }
    return true;
}

static bool grows(const eplb_mindie_growth *growth, int32_t layers)
{
    int64_t rises = 0;
    for (int32_t r = layers; r < growth->rows; r++) {
        for (int32_t p = 0; p < EPLB_GROWTH_PARTS; p++) {
            double before = growth->parts[r - layers][p];
            double after = growth->parts[r][p];
            if (after < before) {
                return false;
            }
            rises += after > before ? 1 : 0;
        }
    }
    return rises >= LEAST_RISES;
}

int32_t eplb_mindie_growth_layers(const eplb_mindie_growth *growth)
{
    for (int32_t layers = 1; layers <= growth->rows / 2; layers++) {
        if (growth->rows % layers == 0 && grows(growth, layers)) {
            return layers;
        }
    }
    return 0;
}

void eplb_mindie_growth_clear(eplb_mindie_growth *growth, const eplb_hooks *hooks)
{
    eplb_free(hooks, growth->parts);
    *growth = (eplb_mindie_growth){0};
}
