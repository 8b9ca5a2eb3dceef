/* SPDX-License-Identifier: MIT */
/* Small logs for `eplb report`, and looks at what it says of them. */
#ifndef EPLB_TESTS_CLI_REPORT_LOGS_H
#define EPLB_TESTS_CLI_REPORT_LOGS_H

#include "run_json.h"

#define LOG_EXPERTS 8

/* Tokens of an expert in a step. */
typedef int tokens_of(int step, int expert);

/* Expert 3 has five times its fair share, the last none: 128 assignments. */
static inline int one_hot_expert(int step, int expert)
{
    (void)step;
    return expert == 3 ? 80 : expert == 7 ? 0 : 8;
}

/* The same as a sum of many steps: 8 million assignments. */
static inline int one_hot_expert_in_a_sum(int step, int expert)
{
    return one_hot_expert(step, expert) * 62500;
}

static inline int even_experts(int step, int expert)
{
    (void)step;
    (void)expert;
    return 1000;
}

/* Experts 0 and 1, on one GPU of four, have twice what the next two have: imbalance 1.6, which an
 * exchange takes to 1.2. */
static inline int two_hot_neighbours(int step, int expert)
{
    (void)step;
    return expert < 2 ? 2000 : 1000;
}

/* Each expert in turn has twice what the others have. */
static inline int hot_expert_that_moves(int step, int expert)
{
    return step % LOG_EXPERTS == expert ? 2000 : 1000;
}

/* Experts 0 and 1, on one GPU of four, have three times what others have, in turns. */
static inline int neighbours_in_turn(int step, int expert)
{
    return expert / 2 == 0 && step % 2 == expert ? 3000 : 1000;
}

/* Two steps of three are a little uneven in one way, the third in another. */
static inline int doubtful_imbalance(int step, int expert)
{
    return (step % 3 > 0 ? 0 : 3) == expert ? 1200 : 1000;
}

/* Writes steps of one layer as JSON lines. */
static inline void write_steps(const char *directory, const char *name, int steps,
                               tokens_of *tokens)
{
    FILE *file = fopen(test_join(directory, name).text, "w");
    assert_non_null(file);
    for (int step = 0; step < steps; step++) {
        fprintf(file, "{\"step\":%d,\"layer\":0,\"counts\":[", step);
        for (int expert = 0; expert < LOG_EXPERTS; expert++) {
            fprintf(file, "%s%d", expert > 0 ? "," : "", tokens(step, expert));
        }
        fputs("]}\n", file);
    }
    assert_int_equal(fclose(file), 0);
}

static inline const cJSON *only_source(const cJSON *document)
{
    const cJSON *sources = json_member(document, "sources");
    assert_int_equal(cJSON_GetArraySize(sources), 1);
    return cJSON_GetArrayItem(sources, 0);
}

static inline const cJSON *layer_of(const cJSON *source, int index)
{
    const cJSON *layer = cJSON_GetArrayItem(json_member(source, "per_layer"), index);
    assert_non_null(layer);
    return layer;
}

static inline void assert_verdict(const cJSON *source, const char *code, bool certain)
{
    const cJSON *verdict = json_member(source, "verdict");
    assert_string_equal(json_text(verdict, "code"), code);
    assert_int_equal(cJSON_IsTrue(json_member(verdict, "certain")), certain);
}

static inline bool has_hint(const cJSON *source, const char *code)
{
    const cJSON *hint;
    cJSON_ArrayForEach(hint, json_member(source, "hints"))
    {
        if (strcmp(json_text(hint, "code"), code) == 0) {
            return true;
        }
    }
    return false;
}

static inline void assert_last_line(const run_result *result, const char *line)
{
    size_t length = strlen(line);
    if (result->out_size < length + 2 ||
        strncmp(result->out + result->out_size - length - 2, "\n", 1) != 0 ||
        strncmp(result->out + result->out_size - length - 1, line, length) != 0) {
        print_error("not the last line: \"%s\" of\n%s\n", line, result->out);
        fail();
    }
}

#endif
