/* SPDX-License-Identifier: MIT */
/* Small layers whose fewest copies are known: tests/data/cases/migration.json. */
#ifndef EPLB_TESTS_MIGRATION_CASES_H
#define EPLB_TESTS_MIGRATION_CASES_H

#include "planning.h"

#include <cjson/cJSON.h>

enum { MIGRATION_CASES = 9, MIGRATION_CASE_EXPERTS = 9, MIGRATION_CASE_SLOTS = 12 };

typedef struct migration_case {
    const char *name;
    eplb_load *load;
    eplb_cluster *cluster;
    eplb_placement *current;
    double target;
    int32_t fewest; /* -1: impossible */
} migration_case;

static inline const cJSON *migration_case_item(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_non_null(item);
    return item;
}

static inline migration_case migration_case_of(const cJSON *object)
{
    double load[MIGRATION_CASE_EXPERTS];
    int32_t row[MIGRATION_CASE_SLOTS];
    int32_t experts = 0;
    int32_t slots = 0;
    const cJSON *item;
    const cJSON *expert;
    cJSON_ArrayForEach(item, migration_case_item(object, "load"))
    {
        assert_true(experts < MIGRATION_CASE_EXPERTS);
        load[experts++] = item->valuedouble;
    }
    const cJSON *gpus = migration_case_item(object, "current");
    cJSON_ArrayForEach(item, gpus)
    {
        cJSON_ArrayForEach(expert, item)
        {
            assert_true(slots < MIGRATION_CASE_SLOTS);
            row[slots++] = expert->valueint;
        }
    }
    const cJSON *fewest = migration_case_item(object, "fewest_new_copies");
    migration_case c = {
        .name = migration_case_item(object, "name")->valuestring,
        .load = load_of(load, 1, experts),
        .cluster = cluster_of(cJSON_GetArraySize(gpus), cJSON_GetArraySize(gpus->child), 0),
        .target = migration_case_item(object, "target_imbalance")->valuedouble,
        .fewest = cJSON_IsNull(fewest) ? -1 : fewest->valueint,
    };
    c.current = placement_with_rows(c.cluster, row, 1, experts);
    return c;
}

static inline void free_migration_case(migration_case *c)
{
    eplb_load_destroy(&c->load);
    eplb_cluster_destroy(&c->cluster);
    eplb_placement_destroy(&c->current);
}

/* All of them; to be deleted. */
static inline cJSON *read_migration_cases(void)
{
    char *text = test_read_file(test_data("cases/migration.json").text, NULL);
    cJSON *cases = cJSON_Parse(text);
    free(text);
    assert_int_equal(cJSON_GetArraySize(cases), MIGRATION_CASES);
    return cases;
}

#endif
