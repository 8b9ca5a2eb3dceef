/* SPDX-License-Identifier: MIT */
/* Nine real workloads of DeepSeek-V3, 58 layers x 256 experts, where they lie beside the checkout.
 */
#ifndef EPLB_TESTS_BENCH_WORKLOADS_H
#define EPLB_TESTS_BENCH_WORKLOADS_H

#include <eplb/source.h>

#include "bench.h"

#define BENCH_WORKLOADS 9
#define BENCH_DECODES 3 /* the first ones; the others are prefill */

static inline bench_path bench_workload(int32_t index)
{
    static const char *const names[BENCH_WORKLOADS] = {
        "decode_in1000out1000",  "decode_in2000out100", "decode_in500out1500",
        "prefill_in1000out1000", "prefill_in1024",      "prefill_in1800out100",
        "prefill_in2000out100",  "prefill_in2048",      "prefill_in512",
    };
    char name[128];
    snprintf(name, sizeof(name), "deepseek_v3/%s.json", names[index]);
    return bench_shared(name);
}

/* All of them, one scenario each; NULL when one is missing. */
static inline eplb_load *bench_read_workloads(void)
{
    bench_path files[BENCH_WORKLOADS];
    const char *paths[BENCH_WORKLOADS];
    for (int32_t k = 0; k < BENCH_WORKLOADS; k++) {
        files[k] = bench_workload(k);
        paths[k] = files[k].text;
        if (!bench_is_there(&files[k])) {
            return NULL;
        }
    }
    eplb_error error;
    eplb_load *load;
    bench_check(eplb_source_load(&load, NULL, paths, BENCH_WORKLOADS, NULL, NULL, &error), &error);
    return load;
}

#endif
