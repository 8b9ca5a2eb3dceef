/* SPDX-License-Identifier: MIT */
/* Nine real DeepSeek-V3 workloads, where they lie beside the checkout. */
#ifndef EPLB_TESTS_DEEPSEEK_V3_H
#define EPLB_TESTS_DEEPSEEK_V3_H

#include "support.h"

#include <eplb/source.h>

static const char *const deepseek_v3[] = {
    "decode_in1000out1000.json",  "decode_in2000out100.json", "decode_in500out1500.json",
    "prefill_in1000out1000.json", "prefill_in1024.json",      "prefill_in1800out100.json",
    "prefill_in2000out100.json",  "prefill_in2048.json",      "prefill_in512.json",
};

enum { DEEPSEEK_V3_FILES = sizeof(deepseek_v3) / sizeof(deepseek_v3[0]) };

/* The workloads from `first` on, a scenario of 58 layers x 256 experts each; the test is skipped
 * where there are none. */
static inline eplb_load *deepseek_v3_or_skip(int32_t first, int32_t count)
{
    test_path paths[DEEPSEEK_V3_FILES];
    const char *texts[DEEPSEEK_V3_FILES];
    for (int32_t i = 0; i < count; i++) {
        char name[128];
        snprintf(name, sizeof(name), "data/deepseek_v3/%s", deepseek_v3[first + i]);
        paths[i] = test_shared_or_skip(name);
        texts[i] = paths[i].text;
    }
    eplb_error error;
    eplb_load *load;
    assert_ok(eplb_source_load(&load, NULL, texts, count, NULL, NULL, &error), &error);
    return load;
}

#endif
