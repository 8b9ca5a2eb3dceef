/* SPDX-License-Identifier: MIT */
#include "sweep_knee.h"

#include <eplb/cluster.h>

bool sweep_fit(int32_t experts, int32_t gpus, int32_t redundant, int32_t *slots_per_gpu)
{
    int64_t each = ((int64_t)experts + redundant + gpus - 1) / gpus;
    if (each > experts || each * gpus > EPLB_MAX_SLOTS) {
        return false;
    }
    *slots_per_gpu = (int32_t)each;
    return true;
}

int32_t sweep_knee(const double *imbalances, int32_t count)
{
    double best = imbalances[0];
    double worst = imbalances[0];
    for (int32_t i = 1; i < count; i++) {
        best = imbalances[i] < best ? imbalances[i] : best;
        worst = imbalances[i] > worst ? imbalances[i] : worst;
    }
    double share = KNEE_SHARE * (worst - best);
    double left = share > KNEE_LEAST ? share : KNEE_LEAST;
    int32_t knee = 0;
    while (imbalances[knee] - best > left) {
        knee++;
    }
    return knee;
}

double sweep_gain_behind(const double *imbalances, int32_t count, int32_t index)
{
    double gain = 0.0;
    for (int32_t i = index + 1; i < count; i++) {
        double better = imbalances[index] - imbalances[i];
        gain = better > gain ? better : gain;
    }
    return gain;
}
