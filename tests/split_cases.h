/* SPDX-License-Identifier: MIT */
/* Small placements whose best weights are known: tests/data/cases/split.json. */
#ifndef EPLB_TESTS_SPLIT_CASES_H
#define EPLB_TESTS_SPLIT_CASES_H

#include "support.h"

#include <cjson/cJSON.h>

#include <eplb/placement.h>

enum { SPLIT_CASES = 4, SPLIT_CASE_EXPERTS = 8, SPLIT_CASE_SLOTS = 12 };

typedef struct split_case {
    const char *name;
    double load[SPLIT_CASE_EXPERTS];
    eplb_placement *placement; /* one layer */
    double even_imbalance;     /* the three are written with nine decimals */
    double best_largest;
    double best_imbalance;
} split_case;

static inline const cJSON *split_case_item(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_non_null(item);
    return item;
}

static inline eplb_placement *split_case_placement(const cJSON *gpus, int32_t experts)
{
    eplb_cluster *cluster = NULL;
    eplb_placement *placement = NULL;
    int32_t row[SPLIT_CASE_SLOTS];
    int32_t slots = 0;
    int32_t per_gpu = cJSON_GetArraySize(gpus->child);
    assert_ok(eplb_cluster_create(&cluster, NULL, cJSON_GetArraySize(gpus), per_gpu, 0, NULL),
              NULL);
    assert_ok(eplb_placement_create(&placement, NULL, cluster, 1, experts, NULL), NULL);
    for (const cJSON *gpu = gpus->child; gpu != NULL; gpu = gpu->next) {
        for (const cJSON *expert = gpu->child; expert != NULL; expert = expert->next) {
            assert_true(slots < SPLIT_CASE_SLOTS);
            row[slots++] = expert->valueint;
        }
    }
    assert_ok(eplb_placement_set_row(placement, 0, row, NULL), NULL);
    eplb_cluster_destroy(&cluster);
    return placement;
}

/* Calls `look` for each case. */
static inline void for_each_split_case(void (*look)(const split_case *c))
{
    char *text = test_read_file(test_data("cases/split.json").text, NULL);
    cJSON *cases = cJSON_Parse(text);
    free(text);
    assert_int_equal(cJSON_GetArraySize(cases), SPLIT_CASES);
    const cJSON *object;
    cJSON_ArrayForEach(object, cases)
    {
        const cJSON *load = split_case_item(object, "load");
        split_case c = {
            .name = split_case_item(object, "name")->valuestring,
            .even_imbalance = split_case_item(object, "even_split_imbalance")->valuedouble,
            .best_largest = split_case_item(object, "best_split_max_gpu_load")->valuedouble,
            .best_imbalance = split_case_item(object, "best_split_imbalance")->valuedouble,
        };
        int32_t experts = cJSON_GetArraySize(load);
        assert_true(experts <= SPLIT_CASE_EXPERTS);
        for (int32_t e = 0; e < experts; e++) {
            c.load[e] = cJSON_GetArrayItem(load, e)->valuedouble;
        }
        c.placement = split_case_placement(split_case_item(object, "placement"), experts);
        look(&c);
        eplb_placement_destroy(&c.placement);
    }
    cJSON_Delete(cases);
}

#endif
