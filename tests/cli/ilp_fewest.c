/* SPDX-License-Identifier: MIT */
/* eplb plan --current MAP --target-imbalance X --ilp on: what is proven of the number of copies. */
#include "../migration_cases.h"
#include "run_json.h"

#include <eplb/format.h>

typedef struct command_case {
    migration_case known;
    const char *directory;
    char line[256]; /* that plans for it */
} command_case;

static void write_load(const char *directory, const eplb_load *load)
{
    FILE *file = fopen(test_join(directory, "load.jsonl").text, "w");
    assert_non_null(file);
    fputs("{\"step\":0,\"layer\":0,\"counts\":[", file);
    for (int32_t e = 0; e < eplb_load_experts(load); e++) {
        fprintf(file, "%s%.0f", e > 0 ? "," : "", eplb_load_row(load, 0, 0)[e]);
    }
    fputs("]}\n", file);
    assert_int_equal(fclose(file), 0);
}

static void prepare(command_case *c)
{
    eplb_error error;
    write_load(c->directory, c->known.load);
    assert_ok(eplb_placement_write(c->known.current, NULL, test_join(c->directory, "map").text,
                                   eplb_format_find("sglang"), &error),
              &error);
    snprintf(c->line, sizeof(c->line),
             "plan --load load.jsonl --gpus %d --slots %d --dense-layers none --current map "
             "--target-imbalance %.10g",
             eplb_cluster_gpus(c->known.cluster), eplb_placement_slots(c->known.current),
             c->known.target);
}

static void for_each_case(const char *directory, void (*check)(const command_case *c))
{
    cJSON *cases = read_migration_cases();
    const cJSON *object;
    cJSON_ArrayForEach(object, cases)
    {
        command_case c = {.known = migration_case_of(object), .directory = directory};
        print_message("%s\n", c.known.name);
        prepare(&c);
        check(&c);
        free_migration_case(&c.known);
    }
    cJSON_Delete(cases);
}

static cJSON *plan_json(const command_case *c, const char *options)
{
    char line[512];
    snprintf(line, sizeof(line), "%s%s --json", c->line, options);
    return run_json(c->directory, line, 0);
}

static run_result plan_text(const command_case *c, const char *options)
{
    char line[512];
    snprintf(line, sizeof(line), "%s%s", c->line, options);
    run_result result = run_line(c->directory, line);
    assert_int_equal(result.exit_code, 0);
    return result;
}

static void check_json(const command_case *c)
{
    cJSON *plan = plan_json(c, " --ilp on");
    const cJSON *layer = json_member(plan, "per_layer")->child;
    const cJSON *ilp = json_member(plan, "ilp");
    bool is_possible = c->known.fewest >= 0;
    assert_true(cJSON_IsTrue(json_member(plan, "valid")));
    assert_int_equal(cJSON_IsTrue(json_member(plan, "target_reached")), is_possible);
    assert_string_equal(json_text(layer, "fewest"), is_possible ? "proven" : "impossible");
    assert_true(json_number(ilp, "proven_fewest_layers") == (is_possible ? 1.0 : 0.0));
    assert_true(json_number(ilp, "impossible_layers") == (is_possible ? 0.0 : 1.0));
    if (is_possible) {
        assert_true(json_number(plan, "copies") == c->known.fewest);
        assert_true(json_number(layer, "copies_at_least") == c->known.fewest);
        assert_true(json_number(ilp, "copies_without") >= c->known.fewest);
    } else {
        assert_true(cJSON_IsNull(json_member(layer, "copies_at_least")));
        assert_true(json_number(layer, "lower_bound") > c->known.target);
    }
    cJSON_Delete(plan);
}

static void small_layers_get_the_fewest_copies_with_proof(void **state)
{
    for_each_case(*state, check_json);
}

static void check_text(const command_case *c)
{
    run_result result = plan_text(c, " --ilp on");
    bool is_possible = c->known.fewest >= 0;
    assert_contains(result.out, is_possible
                                    ? "\nExact search for the fewest copies: proven in 1 of 1 layer"
                                    : "\nExact search for the fewest copies: proven in 0 of 1 ");
    const char *impossible = strstr(result.out, "\n  layer 0: impossible, 1.");
    assert_true((impossible == NULL) == is_possible);
    assert_true(is_possible || strstr(impossible, " is the best there is\n") != NULL);
    assert_null(strstr(result.out, "not reached, best found"));
    run_release(&result);
}

static void text_says_what_is_proven_and_what_is_impossible(void **state)
{
    for_each_case(*state, check_text);
}

/* Nothing is called impossible, or fewest, that was not proven. */
static void check_no_nodes(const command_case *c)
{
    run_result result = plan_text(c, " --ilp on --ilp-nodes 0");
    cJSON *plan = plan_json(c, " --ilp on --ilp-nodes 0");
    const cJSON *layer = json_member(plan, "per_layer")->child;
    bool reached = cJSON_IsTrue(json_member(plan, "target_reached"));
    bool impossible = strcmp(json_text(layer, "fewest"), "impossible") == 0;
    assert_true(!impossible || c->known.fewest < 0);
    assert_true(!reached || json_number(plan, "copies") >= c->known.fewest);
    assert_int_equal(impossible, strstr(result.out, "impossible") != NULL);
    assert_int_equal(!reached && !impossible,
                     strstr(result.out, "\n  layer 0: not reached, best found 1.") != NULL);
    cJSON_Delete(plan);
    run_release(&result);
}

static void without_a_proof_nothing_is_called_impossible(void **state)
{
    for_each_case(*state, check_no_nodes);
}

static void check_limit(const command_case *c)
{
    cJSON *plan = plan_json(c, " --ilp on --max-copies-per-layer 1");
    const cJSON *layer = json_member(plan, "per_layer")->child;
    assert_true(json_number(plan, "copies") <= 1.0);
    if (c->known.fewest > 1) {
        assert_true(cJSON_IsFalse(json_member(plan, "target_reached")));
        assert_string_equal(json_text(layer, "fewest"), "not_reached");
        assert_true(json_number(layer, "copies_at_least") == c->known.fewest);
    }
    cJSON_Delete(plan);
}

static void limits_of_copies_are_kept(void **state)
{
    for_each_case(*state, check_limit);
}

static void check_again(const command_case *c)
{
    char line[512];
    snprintf(line, sizeof(line), "%s --ilp on --out next", c->line);
    run_ok(c->directory, line);
    assert_int_equal(
        rename(test_join(c->directory, "next").text, test_join(c->directory, "map").text), 0);
    cJSON *plan = plan_json(c, " --ilp on");
    assert_true(json_number(plan, "copies") == 0.0);
    cJSON_Delete(plan);
}

static void the_same_load_again_copies_nothing(void **state)
{
    for_each_case(*state, check_again);
}

/* Neither without the option nor without a target. */
static void check_not_asked(const command_case *c)
{
    static const char *const options[] = {"", " --ilp auto"};
    for (size_t i = 0; i < 2; i++) {
        cJSON *plan = plan_json(c, options[i]);
        run_result result = plan_text(c, options[i]);
        const cJSON *layer = json_member(plan, "per_layer")->child;
        assert_null(cJSON_GetObjectItemCaseSensitive(layer, "fewest"));
        assert_null(strstr(result.out, "Exact search"));
        cJSON_Delete(plan);
        run_release(&result);
    }
}

static void without_the_option_nothing_is_said(void **state)
{
    for_each_case(*state, check_not_asked);
}

TEST_MAIN(IN_DIRECTORY(small_layers_get_the_fewest_copies_with_proof),
          IN_DIRECTORY(text_says_what_is_proven_and_what_is_impossible),
          IN_DIRECTORY(without_a_proof_nothing_is_called_impossible),
          IN_DIRECTORY(limits_of_copies_are_kept), IN_DIRECTORY(the_same_load_again_copies_nothing),
          IN_DIRECTORY(without_the_option_nothing_is_said))
