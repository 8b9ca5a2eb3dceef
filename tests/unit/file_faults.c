/* SPDX-License-Identifier: MIT */
/* The file writer under system calls that fail or do half: the linker puts these in their place. */
#include "support.h"

#include <errno.h>
#include <sys/stat.h>

#include <eplb/file.h>

static struct {
    size_t longest_write; /* 0: as long as asked */
    int interruptions;    /* of the next writes */
    int fsync_error;
    int close_error;
    int closes;
} faults;

ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);
int __wrap_fsync(int fd);
int __real_close(int fd);
int __wrap_close(int fd);

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    if (faults.interruptions > 0) {
        faults.interruptions--;
        errno = EINTR;
        return -1;
    }
    bool cut = faults.longest_write > 0 && size > faults.longest_write;
    return __real_write(fd, data, cut ? faults.longest_write : size);
}

int __wrap_fsync(int fd)
{
    (void)fd;
    errno = faults.fsync_error;
    return faults.fsync_error != 0 ? -1 : 0;
}

int __wrap_close(int fd)
{
    faults.closes++;
    int result = __real_close(fd);
    errno = result == 0 ? faults.close_error : errno;
    return faults.close_error != 0 ? -1 : result;
}

static int setup(void **state)
{
    memset(&faults, 0, sizeof(faults));
    return test_directory_setup(state);
}

static void assert_file_is(const char *path, const char *expected)
{
    char *text = test_read_file(path, NULL);
    assert_string_equal(text, expected);
    free(text);
}

static void short_writes_are_continued(void **state)
{
    test_path path = test_join(*state, "map.json");
    faults.longest_write = 3;
    assert_ok(eplb_file_write(NULL, path.text, "0123456789", 10, NULL), NULL);
    assert_file_is(path.text, "0123456789");
}

static void interrupted_writes_are_repeated(void **state)
{
    test_path path = test_join(*state, "map.json");
    faults.longest_write = 4;
    faults.interruptions = 5;
    assert_ok(eplb_file_write(NULL, path.text, "0123456789", 10, NULL), NULL);
    assert_int_equal(faults.interruptions, 0);
    assert_file_is(path.text, "0123456789");
}

/* Writes over an old file with the faults set, which must fail and leave the old one alone. */
static void assert_write_fails(const char *directory, const char *reason)
{
    test_path path = test_join(directory, "map.json");
    test_write_text(path.text, "old");
    eplb_error error;
    assert_status(eplb_file_write(NULL, path.text, "new", 3, &error), EPLB_ERROR_IO, &error);
    assert_contains(error.message, path.text);
    assert_contains(error.message, reason);
    assert_file_is(path.text, "old");
    assert_int_equal(remove(path.text), 0);
    assert_int_equal(rmdir(directory), 0); /* works when nothing else is there */
    assert_int_equal(mkdir(directory, 0700), 0);
}

static void bytes_that_do_not_reach_the_disk_are_an_error(void **state)
{
    faults.fsync_error = EIO;
    assert_write_fails(*state, strerror(EIO));
}

static void failing_close_is_an_error(void **state)
{
    faults.close_error = EDQUOT;
    assert_write_fails(*state, strerror(EDQUOT));
}

/* Another thread may have got the same number in between. */
static void file_is_closed_exactly_once(void **state)
{
    test_path path = test_join(*state, "map.json");
    eplb_file_writer *writer = NULL;
    assert_ok(eplb_file_writer_create(&writer, NULL, path.text, NULL), NULL);
    assert_ok(eplb_file_writer_commit(writer, NULL), NULL);
    int after_commit = faults.closes; /* the file and its directory */
    eplb_file_writer_destroy(&writer);
    assert_int_equal(faults.closes, after_commit);
    faults.closes = 0;
    assert_ok(eplb_file_writer_create(&writer, NULL, path.text, NULL), NULL);
    eplb_file_writer_destroy(&writer);
    assert_int_equal(faults.closes, 1);
}

#define in_directory(test) cmocka_unit_test_setup_teardown(test, setup, test_directory_teardown)

TEST_MAIN(in_directory(short_writes_are_continued), in_directory(interrupted_writes_are_repeated),
          in_directory(bytes_that_do_not_reach_the_disk_are_an_error),
          in_directory(failing_close_is_an_error), in_directory(file_is_closed_exactly_once))
