/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>

#define WORDS 64

static char *take_all(FILE *file, size_t *size)
{
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long length = ftell(file);
    assert_true(length >= 0);
    rewind(file);
    char *text = malloc((size_t)length + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)length, file), length);
    text[length] = '\0';
    fclose(file);
    if (size != NULL) {
        *size = (size_t)length;
    }
    return text;
}

/* In the child: becomes the command. */
static void become(const char *directory, const char *const *arguments, int out, int err)
{
    const char *argv[WORDS + 2] = {"eplb"};
    for (int i = 0; i < WORDS && arguments[i] != NULL; i++) {
        argv[i + 1] = arguments[i];
    }
    int in = open("/dev/null", O_RDONLY);
    if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(err, STDERR_FILENO) < 0 || chdir(directory) != 0) {
        _exit(126);
    }
    execv(getenv("EPLB_COMMAND"), (char *const *)(void *)argv);
    _exit(127);
}

static run_result run(const char *directory, const char *const *arguments, const char *output)
{
    assert_non_null(getenv("EPLB_COMMAND"));
    FILE *out = tmpfile();
    FILE *err = tmpfile();
    assert_non_null(out);
    assert_non_null(err);
    int out_fd = output != NULL ? open(output, O_WRONLY) : fileno(out);
    assert_true(out_fd >= 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        become(directory, arguments, out_fd, fileno(err));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (output != NULL) {
        close(out_fd);
    }
    run_result result = {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1};
    result.out = take_all(out, &result.out_size);
    result.err = take_all(err, NULL);
    return result;
}

run_result run_arguments(const char *directory, const char *const *arguments)
{
    return run(directory, arguments, NULL);
}

run_result run_line_into(const char *directory, const char *line, const char *output)
{
    char *copy = strdup(line);
    assert_non_null(copy);
    const char *words[WORDS + 1];
    size_t count = 0;
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        assert_true(count < WORDS);
        words[count++] = word;
    }
    words[count] = NULL;
    run_result result = run(directory, words, output);
    free(copy);
    return result;
}

run_result run_line(const char *directory, const char *line)
{
    return run_line_into(directory, line, NULL);
}

void run_release(run_result *result)
{
    free(result->out);
    free(result->err);
}

void run_ok(const char *directory, const char *line)
{
    run_result result = run_line(directory, line);
    if (result.exit_code != 0) {
        print_error("eplb %s: exit code %d: %s%s\n", line, result.exit_code, result.out,
                    result.err);
    }
    assert_int_equal(result.exit_code, 0);
    run_release(&result);
}

bool run_is_refused(const char *directory, const run_refusal *expected)
{
    int files = count_files(directory);
    run_result result = run_line(directory, expected->line);
    size_t length = strlen(result.err);
    bool one_line = length > 0 && strcspn(result.err, "\n") == length - 1;
    bool refused = result.exit_code == expected->exit_code && result.out_size == 0 && one_line &&
                   strncmp(result.err, "eplb: ", 6) == 0 &&
                   strstr(result.err, expected->message) != NULL && count_files(directory) == files;
    if (!refused) {
        print_error("eplb %s: exit code %d, expected %d and \"%s\"; out \"%s\", err \"%s\"\n",
                    expected->line, result.exit_code, expected->exit_code, expected->message,
                    result.out, result.err);
    }
    run_release(&result);
    return refused;
}

bool has_file(const char *directory, const char *name)
{
    return access(test_join(directory, name).text, F_OK) == 0;
}

int count_files(const char *directory)
{
    DIR *list = opendir(directory);
    assert_non_null(list);
    int count = 0;
    while (readdir(list) != NULL) {
        count++;
    }
    closedir(list);
    return count - 2; /* "." and ".." */
}

bool same_files(const char *directory, const char *first, const char *second)
{
    size_t first_size;
    size_t second_size;
    char *a = test_read_file(test_join(directory, first).text, &first_size);
    char *b = test_read_file(test_join(directory, second).text, &second_size);
    bool same = first_size == second_size && memcmp(a, b, first_size) == 0;
    free(a);
    free(b);
    return same;
}
