/* SPDX-License-Identifier: MIT */
#include "run.h"

static const char *const commands[] = {"plan",     "report", "diff",  "validate",
                                       "simulate", "sweep",  "synth", "convert"};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static run_result help_of(const char *directory, const char *command)
{
    const char *arguments[] = {command, "--help", NULL};
    return run_arguments(directory, arguments);
}

static void assert_help(const run_result *result)
{
    assert_int_equal(result->exit_code, 0);
    assert_string_equal(result->err, "");
    assert_contains(result->out, "Usage: eplb ");
    assert_contains(result->out, "\nExample:\n  eplb ");
}

static void every_help_has_usage_and_an_example(void **state)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        run_result result = help_of(*state, commands[i]);
        assert_help(&result);
        run_release(&result);
    }
    run_result result = run_line(*state, "--help");
    assert_help(&result);
    for (size_t i = 0; i < COMMANDS; i++) {
        assert_contains(result.out, commands[i]);
    }
    run_release(&result);
}

static void help_command_says_the_same_as_the_option(void **state)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        run_result by_option = help_of(*state, commands[i]);
        const char *arguments[] = {"help", commands[i], NULL};
        run_result by_command = run_arguments(*state, arguments);
        assert_string_equal(by_option.out, by_command.out);
        assert_int_equal(by_command.exit_code, 0);
        run_release(&by_option);
        run_release(&by_command);
    }
}

static void short_option_says_the_same_as_the_long_one(void **state)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        run_result by_long = help_of(*state, commands[i]);
        const char *arguments[] = {commands[i], "-h", NULL};
        run_result by_short = run_arguments(*state, arguments);
        assert_string_equal(by_long.out, by_short.out);
        assert_int_equal(by_short.exit_code, 0);
        run_release(&by_long);
        run_release(&by_short);
    }
}

static void help_wins_over_other_options(void **state)
{
    run_result result = run_line(*state, "plan --gpus 3 --help --nonsense");
    assert_help(&result);
    run_release(&result);
}

static void help_fits_100_columns(void **state)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        run_result result = help_of(*state, commands[i]);
        for (const char *line = result.out; *line != '\0';) {
            size_t length = strcspn(line, "\n");
            assert_true(length <= 100);
            assert_true(length == 0 || line[length - 1] != ' ');
            line += length + 1;
        }
        run_release(&result);
    }
}

/* The line after "Example:", without "  eplb ". */
static char *example_of(const char *directory, const char *command)
{
    run_result result = help_of(directory, command);
    static const char before[] = "\nExample:\n  eplb ";
    const char *start = strstr(result.out, before);
    assert_non_null(start);
    start += sizeof(before) - 1;
    char *example = strndup(start, strcspn(start, "\n"));
    assert_non_null(example);
    run_release(&result);
    return example;
}

static void examples_of_the_help_work(void **state)
{
    run_ok(*state, "synth --layers 2 --steps 2 --tokens 512 --out counts.jsonl");
    for (size_t i = 0; i < COMMANDS; i++) { /* plan writes what validate reads */
        char *example = example_of(*state, commands[i]);
        run_ok(*state, example);
        free(example);
    }
}

static void version_is_one_line_on_standard_output(void **state)
{
    run_result result = run_line(*state, "--version");
    assert_int_equal(result.exit_code, 0);
    assert_int_equal(strncmp(result.out, "eplb ", 5), 0);
    assert_int_equal(strcspn(result.out, "\n") + 1, result.out_size);
    assert_string_equal(result.err, "");
    run_release(&result);
}

static void help_that_does_not_get_out_fails(void **state)
{
    static const char *const lines[] = {"--help", "--version", "plan --help", "synth --help"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        run_result result = run_line_into(*state, lines[i], "/dev/full");
        assert_int_equal(result.exit_code, 1);
        assert_contains(result.err, "standard output");
        run_release(&result);
    }
}

TEST_MAIN(IN_DIRECTORY(every_help_has_usage_and_an_example),
          IN_DIRECTORY(help_command_says_the_same_as_the_option),
          IN_DIRECTORY(short_option_says_the_same_as_the_long_one),
          IN_DIRECTORY(help_wins_over_other_options), IN_DIRECTORY(help_fits_100_columns),
          IN_DIRECTORY(examples_of_the_help_work),
          IN_DIRECTORY(version_is_one_line_on_standard_output),
          IN_DIRECTORY(help_that_does_not_get_out_fails))
