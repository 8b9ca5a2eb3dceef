/* SPDX-License-Identifier: MIT */
/* Looks into the JSON documents that the command prints. What is missing fails the test. */
#ifndef EPLB_TESTS_CLI_RUN_JSON_H
#define EPLB_TESTS_CLI_RUN_JSON_H

#include <cjson/cJSON.h>

#include "run.h"

/* Runs a line and parses its output, exactly one document; to be deleted. */
static inline cJSON *run_json(const char *directory, const char *line, int exit_code)
{
    run_result result = run_line(directory, line);
    cJSON *document = cJSON_ParseWithOpts(result.out, NULL, 1);
    if (result.exit_code != exit_code || document == NULL) {
        print_error("eplb %s: exit code %d: %s%s\n", line, result.exit_code, result.out,
                    result.err);
    }
    assert_int_equal(result.exit_code, exit_code);
    assert_non_null(document);
    run_release(&result);
    return document;
}

static inline const cJSON *json_member(const cJSON *object, const char *name)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(object, name);
    if (member == NULL) {
        print_error("no member \"%s\"\n", name);
    }
    assert_non_null(member);
    return member;
}

static inline double json_number(const cJSON *object, const char *name)
{
    const cJSON *member = json_member(object, name);
    if (!cJSON_IsNumber(member)) {
        print_error("\"%s\" is no number\n", name);
    }
    assert_true(cJSON_IsNumber(member));
    return member->valuedouble;
}

static inline const char *json_text(const cJSON *object, const char *name)
{
    const cJSON *member = json_member(object, name);
    assert_true(cJSON_IsString(member));
    return member->valuestring;
}

#endif
