/* SPDX-License-Identifier: MIT */
/* eplb plan --ilp in a command built without GLPK. */
#include "run.h"

#define PLAN "plan --load log.jsonl --experts 8 --gpus 4 --slots 12 --dense-layers none"

static int setup(void **state)
{
    if (test_directory_setup(state) != 0) {
        return -1;
    }
    run_ok(*state, "synth --layers 2 --experts 8 --steps 1 --tokens 500 --topk 2 --out log.jsonl");
    return 0;
}

static void on_is_refused(void **state)
{
    run_result result = run_line(*state, PLAN " --ilp on --out map");
    assert_int_equal(result.exit_code, 1);
    assert_string_equal(result.err, "eplb: --ilp on: this eplb was built without GLPK\n");
    assert_string_equal(result.out, "");
    assert_false(has_file(*state, "map"));
    run_release(&result);
}

static void auto_warns_and_plans(void **state)
{
    run_result result = run_line(*state, PLAN " --ilp auto --out map");
    assert_int_equal(result.exit_code, 0);
    assert_contains(result.err, "--ilp auto does nothing: this eplb was built without GLPK\n");
    assert_null(strstr(result.out, "Exact"));
    run_release(&result);
    run_ok(*state, PLAN " --out off");
    assert_true(same_files(*state, "off", "map"));
}

#define WITH_LOAD(test) cmocka_unit_test_setup_teardown(test, setup, test_directory_teardown)

TEST_MAIN(WITH_LOAD(on_is_refused), WITH_LOAD(auto_warns_and_plans))
