/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <eplb/file.h>

static int entries(const char *directory)
{
    DIR *dir = opendir(directory);
    assert_non_null(dir);
    int count = 0;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(dir);
    return count;
}

static void assert_file_is(const char *path, const char *expected)
{
    char *text = test_read_file(path, NULL);
    assert_string_equal(text, expected);
    free(text);
}

static mode_t mode_of(const char *path)
{
    struct stat entry;
    assert_int_equal(lstat(path, &entry), 0);
    return entry.st_mode;
}

static eplb_status write_text(const char *path, const char *text, eplb_error *error)
{
    return eplb_file_write(NULL, path, text, strlen(text), error);
}

static eplb_file_writer *open_writer(const char *path, const char *text)
{
    eplb_file_writer *writer = NULL;
    eplb_error error;
    assert_ok(eplb_file_writer_create(&writer, NULL, path, &error), &error);
    assert_ok(eplb_file_writer_append(writer, text, strlen(text), &error), &error);
    return writer;
}

static void file_appears_with_commit_and_not_before(void **state)
{
    test_path path = test_join(*state, "map.json");
    eplb_file_writer *writer = open_writer(path.text, "first ");
    assert_ok(eplb_file_writer_append(writer, "second", 6, NULL), NULL);
    assert_int_not_equal(access(path.text, F_OK), 0);
    assert_ok(eplb_file_writer_commit(writer, NULL), NULL);
    assert_file_is(path.text, "first second");
    eplb_file_writer_destroy(&writer);
    assert_null(writer);
    assert_file_is(path.text, "first second");
    assert_int_equal(entries(*state), 1);
}

static void reader_sees_the_old_file_until_commit(void **state)
{
    test_path path = test_join(*state, "map.json");
    test_write_text(path.text, "old");
    eplb_file_writer *writer = open_writer(path.text, "new and longer");
    assert_file_is(path.text, "old");
    assert_ok(eplb_file_writer_commit(writer, NULL), NULL);
    eplb_file_writer_destroy(&writer);
    assert_file_is(path.text, "new and longer");
}

static void discarded_writer_leaves_the_old_file_and_nothing_else(void **state)
{
    test_path path = test_join(*state, "map.json");
    test_write_text(path.text, "old");
    eplb_file_writer *writer = open_writer(path.text, "new");
    eplb_file_writer_destroy(&writer);
    assert_file_is(path.text, "old");
    assert_int_equal(entries(*state), 1);
}

static void killed_writer_leaves_the_old_file(void **state)
{
    test_path path = test_join(*state, "map.json");
    test_write_text(path.text, "old");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        eplb_file_writer *writer = NULL;
        if (eplb_file_writer_create(&writer, NULL, path.text, NULL) == EPLB_OK &&
            eplb_file_writer_append(writer, "half of the n", 13, NULL) == EPLB_OK) {
            (void)kill(getpid(), SIGKILL);
        }
        _exit(0);
    }
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
    assert_file_is(path.text, "old");
}

static void two_writers_of_one_file_do_not_mix(void **state)
{
    test_path path = test_join(*state, "map.json");
    eplb_file_writer *one = open_writer(path.text, "one");
    eplb_file_writer *two = open_writer(path.text, "two");
    assert_ok(eplb_file_writer_commit(one, NULL), NULL);
    assert_file_is(path.text, "one");
    assert_ok(eplb_file_writer_commit(two, NULL), NULL);
    assert_file_is(path.text, "two");
    eplb_file_writer_destroy(&one);
    eplb_file_writer_destroy(&two);
    assert_int_equal(entries(*state), 1);
}

/* Writes in a process without rights in /dev: were the device replaced, it would be that of the
 * machine. The result is the status, or EPLB_ERROR_UNSUPPORTED where rights cannot be given up. */
static eplb_status write_without_rights(const char *path)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool harmless = geteuid() != 0 || setuid(65534) == 0;
        _exit(-(int)(harmless ? write_text(path, "gone", NULL) : EPLB_ERROR_UNSUPPORTED));
    }
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    return (eplb_status)-WEXITSTATUS(result);
}

static void device_is_written_directly(void **state)
{
    (void)state;
    eplb_status status = write_without_rights("/dev/null");
    if (status == EPLB_ERROR_UNSUPPORTED) {
        skip();
    }
    assert_ok(status, NULL);
}

static void full_device_is_an_error(void **state)
{
    (void)state;
    eplb_status status = write_without_rights("/dev/full");
    if (status == EPLB_ERROR_UNSUPPORTED || access("/dev/full", W_OK) != 0) {
        skip();
    }
    assert_status(status, EPLB_ERROR_IO, NULL);
}

static void pipe_is_written_directly_and_stays_a_pipe(void **state)
{
    test_path path = test_join(*state, "pipe");
    assert_int_equal(mkfifo(path.text, 0600), 0);
    int reader = open(path.text, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_ok(write_text(path.text, "through", NULL), NULL);
    char text[16] = "";
    assert_int_equal(read(reader, text, sizeof(text)), 7);
    assert_memory_equal(text, "through", 7);
    close(reader);
    assert_true(S_ISFIFO(mode_of(path.text)));
    assert_int_equal(entries(*state), 1);
}

static test_path path_of_descriptor(const char *directory, int fd)
{
    test_path path;
    snprintf(path.text, sizeof(path.text), "%s/%d", directory, fd);
    return path;
}

/* Such a pipe has no path of its own. */
static void pipe_can_be_named_by_its_descriptor(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    eplb_error error;
    assert_ok(write_text(path_of_descriptor("/dev/fd", ends[1]).text, "thr", &error), &error);
    assert_ok(write_text(path_of_descriptor("/proc/self/fd", ends[1]).text, "ough", &error),
              &error);
    char text[16] = "";
    assert_int_equal(read(ends[0], text, sizeof(text)), 7);
    assert_memory_equal(text, "through", 7);
    close(ends[0]);
    close(ends[1]);
}

/* Who has it open goes on writing to the same file. */
static void open_file_is_continued_by_its_descriptor(void **state)
{
    test_path path = test_join(*state, "log");
    int fd = open(path.text, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "first ", 6), 6);
    eplb_error error;
    assert_ok(write_text(path_of_descriptor("/dev/fd", fd).text, "second ", &error), &error);
    assert_int_equal(write(fd, "third", 5), 5);
    close(fd);
    assert_file_is(path.text, "first second third");
    assert_int_equal(entries(*state), 1);
}

static void descriptor_that_is_not_open_is_refused(void **state)
{
    (void)state;
    static const char *const paths[] = {"/dev/fd/1000000", "/dev/fd/99999999999", "/dev/fd/1x"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        eplb_error error;
        assert_status(write_text(paths[i], "x", &error), EPLB_ERROR_IO, &error);
        assert_contains(error.message, paths[i]);
    }
}

/* In a process of its own, whose standard output and error are that file. */
static void standard_streams_have_names(void **state)
{
    test_path path = test_join(*state, "log");
    int fd = open(path.text, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool fails = dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0 ||
                     write_text("/dev/stdout", "out ", NULL) != EPLB_OK ||
                     write_text("/dev/stderr", "error", NULL) != EPLB_OK;
        _exit(fails ? 1 : 0);
    }
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    close(fd);
    assert_file_is(path.text, "out error");
}

static void link_stays_and_what_it_points_to_is_replaced(void **state)
{
    test_path directory = test_join(*state, "elsewhere");
    assert_int_equal(mkdir(directory.text, 0700), 0);
    test_path target = test_join(directory.text, "map.json");
    test_write_text(target.text, "old");
    test_path link = test_join(*state, "link");
    assert_int_equal(symlink("elsewhere/map.json", link.text), 0);
    assert_ok(write_text(link.text, "new", NULL), NULL);
    assert_true(S_ISLNK(mode_of(link.text)));
    assert_true(S_ISREG(mode_of(target.text)));
    assert_file_is(target.text, "new");
    assert_int_equal(entries(directory.text), 1);
    assert_int_equal(entries(*state), 2);
}

static void link_that_leads_nowhere_gets_its_file(void **state)
{
    test_path directory = test_join(*state, "elsewhere");
    assert_int_equal(mkdir(directory.text, 0700), 0);
    test_path first = test_join(*state, "first");
    test_path second = test_join(directory.text, "second");
    assert_int_equal(symlink("elsewhere/second", first.text), 0);
    assert_int_equal(symlink("map.json", second.text), 0);
    assert_ok(write_text(first.text, "new", NULL), NULL);
    assert_true(S_ISLNK(mode_of(first.text)));
    assert_true(S_ISLNK(mode_of(second.text)));
    assert_file_is(test_join(directory.text, "map.json").text, "new");
    assert_int_equal(entries(directory.text), 2);
}

static void link_into_a_missing_directory_is_refused(void **state)
{
    test_path link = test_join(*state, "link");
    assert_int_equal(symlink("missing/map.json", link.text), 0);
    eplb_error error;
    assert_status(write_text(link.text, "new", &error), EPLB_ERROR_IO, &error);
    assert_true(S_ISLNK(mode_of(link.text)));
    assert_int_equal(entries(*state), 1);
}

static void link_to_itself_is_refused(void **state)
{
    test_path link = test_join(*state, "link");
    assert_int_equal(symlink("link", link.text), 0);
    eplb_error error;
    assert_status(write_text(link.text, "new", &error), EPLB_ERROR_IO, &error);
    assert_true(S_ISLNK(mode_of(link.text)));
    assert_int_equal(entries(*state), 1);
}

static void permission_bits_of_an_existing_file_are_kept(void **state)
{
    test_path path = test_join(*state, "map.json");
    static const mode_t modes[] = {0640, 0600, 0444, 0666};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        test_write_text(path.text, "old");
        assert_int_equal(chmod(path.text, modes[i]), 0);
        assert_ok(write_text(path.text, "new", NULL), NULL);
        assert_file_is(path.text, "new");
        assert_int_equal(mode_of(path.text) & 07777, modes[i]);
        assert_int_equal(remove(path.text), 0);
    }
}

static void new_file_gets_the_permissions_of_the_umask(void **state)
{
    test_path path = test_join(*state, "map.json");
    mode_t before = umask(027);
    eplb_status status = write_text(path.text, "new", NULL);
    umask(before);
    assert_ok(status, NULL);
    assert_int_equal(mode_of(path.text) & 07777, 0640);
}

static void directory_is_refused(void **state)
{
    eplb_error error;
    eplb_file_writer *writer = NULL;
    assert_status(eplb_file_writer_create(&writer, NULL, *state, &error), EPLB_ERROR_IO, &error);
    assert_null(writer);
    assert_contains(error.message, *state);
    assert_true(S_ISDIR(mode_of(*state)));
    assert_int_equal(entries(*state), 0);
}

static void missing_directory_is_refused(void **state)
{
    test_path path = test_join(*state, "no-such-directory/map.json");
    eplb_error error;
    assert_status(write_text(path.text, "new", &error), EPLB_ERROR_IO, &error);
    assert_contains(error.message, path.text);
    assert_int_equal(entries(*state), 0);
}

static void missing_path_is_refused(void **state)
{
    (void)state;
    eplb_error error;
    eplb_file_writer *writer = (eplb_file_writer *)&error;
    assert_status(eplb_file_writer_create(&writer, NULL, NULL, &error), EPLB_ERROR_ARGUMENT,
                  &error);
    assert_null(writer);
    writer = (eplb_file_writer *)&error;
    assert_status(eplb_file_writer_create(&writer, NULL, "", &error), EPLB_ERROR_ARGUMENT, &error);
    assert_null(writer);
    assert_status(eplb_file_writer_create(NULL, NULL, "x", &error), EPLB_ERROR_ARGUMENT, &error);
    assert_status(eplb_file_write(NULL, NULL, "x", 1, &error), EPLB_ERROR_ARGUMENT, &error);
}

static void broken_pipe_is_an_error_and_stays_one(void **state)
{
    test_path path = test_join(*state, "pipe");
    assert_int_equal(mkfifo(path.text, 0600), 0);
    int reader = open(path.text, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    eplb_file_writer *writer = open_writer(path.text, "x");
    close(reader);
    void (*handler)(int) = signal(SIGPIPE, SIG_IGN);
    eplb_error error;
    assert_status(eplb_file_writer_append(writer, "y", 1, &error), EPLB_ERROR_IO, &error);
    assert_contains(error.message, path.text);
    assert_status(eplb_file_writer_append(writer, "", 0, &error), EPLB_ERROR_IO, &error);
    assert_status(eplb_file_writer_commit(writer, &error), EPLB_ERROR_IO, &error);
    signal(SIGPIPE, handler);
    eplb_file_writer_destroy(&writer);
    assert_true(S_ISFIFO(mode_of(path.text)));
}

/* A limit on file sizes refuses bytes half-way through, as a disk that fills up does. */
static void file_that_outgrows_the_disk_leaves_the_old_one(void **state)
{
    static const char block[65536];
    test_path path = test_join(*state, "map.json");
    test_write_text(path.text, "old");
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 1000, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    eplb_error error;
    eplb_status status = eplb_file_write(NULL, path.text, block, sizeof(block), &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_status(status, EPLB_ERROR_IO, &error);
    assert_file_is(path.text, "old");
    assert_int_equal(entries(*state), 1);
}

static void target_that_became_a_directory_fails_at_commit(void **state)
{
    test_path path = test_join(*state, "map.json");
    eplb_file_writer *writer = open_writer(path.text, "new");
    assert_int_equal(mkdir(path.text, 0700), 0);
    eplb_error error;
    assert_status(eplb_file_writer_commit(writer, &error), EPLB_ERROR_IO, &error);
    assert_contains(error.message, path.text);
    eplb_file_writer_destroy(&writer);
    assert_true(S_ISDIR(mode_of(path.text)));
    assert_int_equal(entries(*state), 1);
}

static void committed_writer_takes_no_more(void **state)
{
    test_path path = test_join(*state, "map.json");
    eplb_file_writer *writer = open_writer(path.text, "whole");
    assert_ok(eplb_file_writer_commit(writer, NULL), NULL);
    eplb_error error;
    assert_status(eplb_file_writer_commit(writer, &error), EPLB_ERROR_IO, &error);
    assert_status(eplb_file_writer_append(writer, "x", 1, &error), EPLB_ERROR_IO, &error);
    eplb_file_writer_destroy(&writer);
    assert_file_is(path.text, "whole");
}

static void empty_file_is_a_file(void **state)
{
    test_path path = test_join(*state, "map.json");
    assert_ok(eplb_file_write(NULL, path.text, NULL, 0, NULL), NULL);
    assert_file_is(path.text, "");
}

static void name_of_the_greatest_length_can_be_written(void **state)
{
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    test_path path = test_join(*state, name);
    assert_ok(write_text(path.text, "whole", NULL), NULL);
    assert_int_equal(entries(*state), 1);
}

static void path_without_a_directory_is_here(void **state)
{
    char here[4096];
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(*state), 0);
    eplb_status status = write_text("map.json", "new", NULL);
    assert_int_equal(chdir(here), 0);
    assert_ok(status, NULL);
    assert_file_is(test_join(*state, "map.json").text, "new");
    assert_int_equal(entries(*state), 1);
}

static void bytes_come_out_as_they_went_in(void **state)
{
    test_path path = test_join(*state, "map.bin");
    static unsigned char bytes[300000];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(i * 7 % 251);
    }
    eplb_file_writer *writer = open_writer(path.text, "");
    for (size_t done = 0, part = 1; done < sizeof(bytes); done += part) {
        part = done + 2 * part < sizeof(bytes) ? 2 * part : sizeof(bytes) - done;
        assert_ok(eplb_file_writer_append(writer, bytes + done, part, NULL), NULL);
    }
    assert_ok(eplb_file_writer_commit(writer, NULL), NULL);
    eplb_file_writer_destroy(&writer);
    size_t size = 0;
    char *got = test_read_file(path.text, &size);
    assert_int_equal(size, sizeof(bytes));
    assert_memory_equal(got, bytes, size);
    free(got);
}

static void destroying_nothing_does_nothing(void **state)
{
    (void)state;
    eplb_file_writer *writer = NULL;
    eplb_file_writer_destroy(&writer);
    eplb_file_writer_destroy(NULL);
}

static eplb_status write_into(const eplb_hooks *hooks, void *directory)
{
    test_path path = test_join(directory, "map.json");
    eplb_status status = eplb_file_write(hooks, path.text, "new", 3, NULL);
    assert_int_equal(entries(directory), status == EPLB_OK ? 1 : 0);
    return status;
}

static void failing_allocation_leaves_no_file(void **state)
{
    test_each_failing_allocation(write_into, *state);
}

TEST_MAIN(IN_DIRECTORY(file_appears_with_commit_and_not_before),
          IN_DIRECTORY(reader_sees_the_old_file_until_commit),
          IN_DIRECTORY(discarded_writer_leaves_the_old_file_and_nothing_else),
          IN_DIRECTORY(killed_writer_leaves_the_old_file),
          IN_DIRECTORY(two_writers_of_one_file_do_not_mix),
          cmocka_unit_test(device_is_written_directly), cmocka_unit_test(full_device_is_an_error),
          IN_DIRECTORY(pipe_is_written_directly_and_stays_a_pipe),
          cmocka_unit_test(pipe_can_be_named_by_its_descriptor),
          IN_DIRECTORY(open_file_is_continued_by_its_descriptor),
          cmocka_unit_test(descriptor_that_is_not_open_is_refused),
          IN_DIRECTORY(standard_streams_have_names),
          IN_DIRECTORY(link_stays_and_what_it_points_to_is_replaced),
          IN_DIRECTORY(link_that_leads_nowhere_gets_its_file),
          IN_DIRECTORY(link_into_a_missing_directory_is_refused),
          IN_DIRECTORY(link_to_itself_is_refused),
          IN_DIRECTORY(permission_bits_of_an_existing_file_are_kept),
          IN_DIRECTORY(new_file_gets_the_permissions_of_the_umask),
          IN_DIRECTORY(name_of_the_greatest_length_can_be_written),
          IN_DIRECTORY(directory_is_refused), IN_DIRECTORY(missing_directory_is_refused),
          cmocka_unit_test(missing_path_is_refused),
          IN_DIRECTORY(broken_pipe_is_an_error_and_stays_one),
          IN_DIRECTORY(file_that_outgrows_the_disk_leaves_the_old_one),
          IN_DIRECTORY(target_that_became_a_directory_fails_at_commit),
          IN_DIRECTORY(committed_writer_takes_no_more), IN_DIRECTORY(empty_file_is_a_file),
          IN_DIRECTORY(path_without_a_directory_is_here),
          IN_DIRECTORY(bytes_come_out_as_they_went_in),
          cmocka_unit_test(destroying_nothing_does_nothing),
          IN_DIRECTORY(failing_allocation_leaves_no_file))
