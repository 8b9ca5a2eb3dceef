/* SPDX-License-Identifier: MIT */
/* Nine workloads of DeepSeek-V3, of which one, all decode or all prefill are left out. */
#include "generalise.h"

#include "workloads.h"

bool generalise_deepseek_v3(generalise_study *study)
{
    *study = (generalise_study){
        .bit = GENERALISE_DEEPSEEK_V3,
        .name = "deepseek_v3",
        .about = "plans on all workloads but those left out",
        .columns = {"one left out", "decode left out", "prefill left out"},
        .shapes = {{.gpus = 32, .slots_per_gpu = 9, .most = 1.039},
                   {.gpus = 72, .slots_per_gpu = 4, .most = 1.095}},
    };
    eplb_load *load = bench_read_workloads();
    if (load == NULL) {
        return false;
    }
    generalise_role roles[BENCH_WORKLOADS];
    for (int32_t out = 0; out < BENCH_WORKLOADS; out++) {
        for (int32_t k = 0; k < BENCH_WORKLOADS; k++) {
            roles[k] = k == out ? GENERALISE_SCORE : GENERALISE_PLAN;
        }
        generalise_add_fold(study, 0, load, roles);
    }
    for (int32_t family = 0; family < 2; family++) {
        for (int32_t k = 0; k < BENCH_WORKLOADS; k++) {
            roles[k] = (k >= BENCH_DECODES) == family ? GENERALISE_SCORE : GENERALISE_PLAN;
        }
        generalise_add_fold(study, 1 + family, load, roles);
    }
    eplb_load_destroy(&load);
    return true;
}
