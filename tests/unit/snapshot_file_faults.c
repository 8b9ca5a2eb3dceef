/* SPDX-License-Identifier: MIT */
/* Snapshot files whose writing stops in the midst: the linker puts these in the place of system
 * calls, so that a process can be killed before each byte that it writes and around each call. */
#include "snapshot_file.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

/* What happens while a file is written: a byte reaches it, or a call begins or ends. */
static struct {
    int64_t left;   /* events until it stops */
    bool kills;     /* the process is killed; else writing fails, as on a full disk */
    bool unflushed; /* bytes were written that a crash of the machine may lose */
    bool renamed_unflushed;
} fault;

ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_close(int fd);
int __wrap_close(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

/* False when the event must not happen. */
static bool event_happens(void)
{
    if (fault.left == 0) {
        if (fault.kills) {
            raise(SIGKILL);
        }
        return false;
    }
    fault.left--;
    return true;
}

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    size_t written = 0;
    while (written < size && event_happens()) {
        assert_int_equal(__real_write(fd, (const char *)data + written, 1), 1);
        written++;
    }
    fault.unflushed = true;
    errno = ENOSPC;
    return written > 0 || size == 0 ? (ssize_t)written : -1;
}

int __wrap_fsync(int fd)
{
    int result = event_happens() ? __real_fsync(fd) : -1;
    fault.unflushed = fault.unflushed && result != 0;
    return event_happens() ? result : -1;
}

int __wrap_close(int fd)
{
    (void)event_happens();
    int result = __real_close(fd);
    (void)event_happens();
    return result;
}

int __wrap_rename(const char *from, const char *to)
{
    fault.renamed_unflushed = fault.unflushed;
    int result = event_happens() ? __real_rename(from, to) : -1;
    return event_happens() ? result : -1;
}

static int64_t filled_steps_of_file(const char *path)
{
    eplb_snapshot *read = NULL;
    eplb_error error;
    assert_ok(eplb_snapshot_read(&read, NULL, path, -1, &error), &error);
    int64_t filled = info_of(read).filled_steps;
    eplb_snapshot_destroy(&read);
    return filled;
}

/* Two snapshots of one size: rank 2 counted 2 steps, ranks 2 and 3 together 3. */
enum { OLD_STEPS = 2, NEW_STEPS = 3 };

static eplb_snapshot *prepare(const char *path)
{
    eplb_snapshot *old = sample_of(2);
    fault.left = INT64_MAX;
    assert_ok(eplb_snapshot_write(old, NULL, path, NULL), NULL);
    eplb_snapshot_destroy(&old);
    assert_int_equal(filled_steps_of_file(path), OLD_STEPS);
    return make_sample();
}

/* Writes in a process of its own that is killed after so many events. False when it was not. */
static bool write_and_be_killed(const eplb_snapshot *snapshot, const char *path, int64_t events)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fault.left = events;
        fault.kills = true;
        _exit(eplb_snapshot_write(snapshot, NULL, path, NULL) == EPLB_OK ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return true;
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return false;
}

static void writer_killed_at_every_byte_leaves_the_old_snapshot_or_the_new_one(void **state)
{
    test_path path = test_join(*state, "snapshot");
    eplb_snapshot *sample = prepare(path.text);
    int64_t events = 0;
    int64_t first_new = -1;
    for (bool killed = true; killed; events++) {
        killed = write_and_be_killed(sample, path.text, events);
        int64_t filled = filled_steps_of_file(path.text);
        if (first_new < 0 && filled == NEW_STEPS) {
            first_new = events;
        }
        assert_int_equal(filled, first_new < 0 ? OLD_STEPS : NEW_STEPS);
    }
    /* Neither from the first byte on nor at the end only. */
    assert_true(first_new > SAMPLE_SIZE && first_new < events - 1);
    eplb_snapshot_destroy(&sample);
}

static int entries(const char *path)
{
    DIR *directory = opendir(path);
    assert_non_null(directory);
    int count = 0;
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count - 2; /* "." and ".." */
}

static void disk_that_is_full_at_any_byte_leaves_the_old_snapshot_alone(void **state)
{
    test_path path = test_join(*state, "snapshot");
    eplb_snapshot *sample = prepare(path.text);
    for (int64_t bytes = 0; bytes < SAMPLE_SIZE; bytes++) {
        fault.left = bytes;
        eplb_error error;
        assert_status(eplb_snapshot_write(sample, NULL, path.text, &error), EPLB_ERROR_IO, &error);
        assert_contains(error.message, "snapshot: cannot write: ");
        fault.left = INT64_MAX;
        assert_int_equal(filled_steps_of_file(path.text), OLD_STEPS);
        assert_int_equal(entries(*state), 1);
    }
    assert_ok(eplb_snapshot_write(sample, NULL, path.text, NULL), NULL);
    assert_int_equal(filled_steps_of_file(path.text), NEW_STEPS);
    eplb_snapshot_destroy(&sample);
}

/* The first snapshot has no old one: there is none or all of it. */
static void first_snapshot_is_there_as_a_whole_or_not_at_all(void **state)
{
    test_path path = test_join(*state, "snapshot");
    eplb_snapshot *sample = make_sample();
    for (int64_t bytes = 0; bytes < SAMPLE_SIZE; bytes += 7) {
        assert_true(write_and_be_killed(sample, path.text, bytes));
        assert_int_not_equal(access(path.text, F_OK), 0);
    }
    assert_false(write_and_be_killed(sample, path.text, INT64_MAX));
    fault.left = INT64_MAX;
    assert_int_equal(filled_steps_of_file(path.text), NEW_STEPS);
    eplb_snapshot_destroy(&sample);
}

/* Else a crash of the machine could leave the new name with nothing behind it. */
static void snapshot_is_on_the_disk_before_it_has_its_name(void **state)
{
    test_path path = test_join(*state, "snapshot");
    eplb_snapshot *sample = prepare(path.text);
    fault.renamed_unflushed = true;
    assert_ok(eplb_snapshot_write(sample, NULL, path.text, NULL), NULL);
    assert_false(fault.renamed_unflushed);
    eplb_snapshot_destroy(&sample);
}

TEST_MAIN(IN_DIRECTORY(writer_killed_at_every_byte_leaves_the_old_snapshot_or_the_new_one),
          IN_DIRECTORY(disk_that_is_full_at_any_byte_leaves_the_old_snapshot_alone),
          IN_DIRECTORY(first_snapshot_is_there_as_a_whole_or_not_at_all),
          IN_DIRECTORY(snapshot_is_on_the_disk_before_it_has_its_name))
