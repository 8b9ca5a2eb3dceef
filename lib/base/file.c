/* SPDX-License-Identifier: MIT */
#include <eplb/file.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

/* Of a temporary file: ".eplb-", 16 hexadecimal digits, NUL. It takes the place of the target's
 * name, which may be as long as names can be. */
#define NAME_SIZE 24
#define LONGEST_PATH 4096
/* As the kernel follows. */
#define MOST_LINKS 40

struct eplb_file_writer {
    eplb_hooks hooks;
    char *target;    /* as the caller names it */
    char *final;     /* where the bytes shall be: links resolved; NULL: written directly */
    char *temporary; /* where they are until commit; NULL: written directly */
    int fd;
    bool failed;
};

static eplb_status io_error(eplb_error *error, const char *path, const char *what)
{
    return eplb_error_set(error, EPLB_ERROR_IO, "%s: cannot %s: %s", path, what, strerror(errno));
}

static char *copy_text(const eplb_hooks *hooks, const char *text, size_t spare)
{
    size_t length = strlen(text);
    char *copy = eplb_alloc(hooks, 1, length + spare + 1);
    if (copy != NULL) {
        memcpy(copy, text, length + 1);
    }
    return copy;
}

/* Replaces a path to a symbolic link by what the link says; false when it is none. `path` has room
 * for LONGEST_PATH bytes. */
static bool follow_link(char *path)
{
    char target[LONGEST_PATH];
    ssize_t length = readlink(path, target, sizeof(target));
    if (length <= 0 || (size_t)length == sizeof(target)) {
        return false;
    }
    const char *slash = target[0] == '/' ? NULL : strrchr(path, '/');
    size_t kept = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    if (kept + (size_t)length >= LONGEST_PATH) {
        return false;
    }
    memcpy(path + kept, target, (size_t)length);
    path[kept + (size_t)length] = '\0';
    return true;
}

/* The path with symbolic links resolved, also those that lead where nothing is yet. */
static char *resolve_path(const eplb_hooks *hooks, const char *path)
{
    char *real = realpath(path, NULL);
    if (real != NULL || strlen(path) >= LONGEST_PATH) {
        char *copy = copy_text(hooks, real != NULL ? real : path, 0);
        free(real);
        return copy;
    }
    char followed[LONGEST_PATH];
    strcpy(followed, path);
    for (int links = 0; links < MOST_LINKS && follow_link(followed); links++) {
    }
    return copy_text(hooks, followed, 0);
}

/* Opens a new file beside the target, under a name that nothing has yet. */
static bool open_temporary(eplb_file_writer *writer)
{
    char *name_start = strrchr(writer->temporary, '/');
    name_start = name_start != NULL ? name_start + 1 : writer->temporary;
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t name =
        ((uint64_t)now.tv_nsec << 32) ^ (uint64_t)getpid() ^ (uint64_t)(uintptr_t)writer;
    for (int attempt = 0; attempt < 100; attempt++, name += 0x9e3779b97f4a7c15u) {
        snprintf(name_start, NAME_SIZE, ".eplb-%016llx", (unsigned long long)name);
        writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (writer->fd >= 0 || errno != EEXIST) {
            break;
        }
    }
    return writer->fd >= 0;
}

/* The open file that a path such as /dev/stdout names; -1: it is another path. Opening the path
 * would begin that file anew, and replacing it would cut off who writes to it, too. */
static int named_descriptor(const char *path)
{
    static const char *const directories[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0) {
        return STDOUT_FILENO;
    }
    if (strcmp(path, "/dev/stderr") == 0) {
        return STDERR_FILENO;
    }
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
        size_t length = strlen(directories[i]);
        const char *digits = path + length;
        size_t count =
            strncmp(path, directories[i], length) == 0 ? strspn(digits, "0123456789") : 0;
        if (count > 0 && count < 10 && digits[count] == '\0') {
            return (int)strtol(digits, NULL, 10);
        }
    }
    return -1;
}

static eplb_status open_descriptor(eplb_file_writer *writer, int descriptor, eplb_error *error)
{
    writer->fd = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    return writer->fd >= 0 ? EPLB_OK : io_error(error, writer->target, "open");
}

static eplb_status open_beside(eplb_file_writer *writer, eplb_error *error)
{
    writer->final = resolve_path(&writer->hooks, writer->target);
    writer->temporary =
        writer->final != NULL ? copy_text(&writer->hooks, writer->final, NAME_SIZE) : NULL;
    if (writer->temporary == NULL) {
        return eplb_out_of_memory(error);
    }
    if (!open_temporary(writer)) {
        eplb_status status = io_error(error, writer->target, "create");
        eplb_free(&writer->hooks, writer->temporary);
        writer->temporary = NULL; /* it names no file of ours */
        return status;
    }
    return EPLB_OK;
}

static eplb_status open_target(eplb_file_writer *writer, eplb_error *error)
{
    int descriptor = named_descriptor(writer->target);
    if (descriptor >= 0) {
        return open_descriptor(writer, descriptor, error);
    }
    struct stat existing;
    bool exists = stat(writer->target, &existing) == 0;
    if (!exists && errno != ENOENT) {
        return io_error(error, writer->target, "write");
    }
    if (exists && S_ISDIR(existing.st_mode)) {
        errno = EISDIR;
        return io_error(error, writer->target, "write");
    }
    if (exists && !S_ISREG(existing.st_mode)) {
        writer->fd = open(writer->target, O_WRONLY | O_NOCTTY | O_CLOEXEC);
        return writer->fd >= 0 ? EPLB_OK : io_error(error, writer->target, "open");
    }
    eplb_status status = open_beside(writer, error);
    if (status == EPLB_OK && exists) {
        (void)fchmod(writer->fd, existing.st_mode & 07777);
    }
    return status;
}

eplb_status eplb_file_writer_create(eplb_file_writer **out, const eplb_hooks *hooks,
                                    const char *path, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    if (out == NULL || path == NULL || path[0] == '\0') {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "file writer: no output or no path");
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_file_writer *writer = eplb_alloc_zeroed(&resolved, 1, sizeof(*writer));
    if (writer == NULL) {
        return eplb_out_of_memory(error);
    }
    writer->hooks = resolved;
    writer->fd = -1;
    writer->target = copy_text(&resolved, path, 0);
    eplb_status status =
        writer->target != NULL ? open_target(writer, error) : eplb_out_of_memory(error);
    if (status != EPLB_OK) {
        eplb_file_writer_destroy(&writer);
        return status;
    }
    *out = writer;
    return EPLB_OK;
}

eplb_status eplb_file_writer_append(eplb_file_writer *writer, const void *data, size_t size,
                                    eplb_error *error)
{
    if (writer->failed) {
        return eplb_error_set(error, EPLB_ERROR_IO, "%s: an earlier write failed", writer->target);
    }
    const char *next = data;
    while (size > 0) {
        ssize_t written = write(writer->fd, next, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            writer->failed = true;
            return io_error(error, writer->target, "write");
        }
        next += written;
        size -= (size_t)written;
    }
    return EPLB_OK;
}

/* Makes the rename itself survive a crash. Not every file system can: that is no failure. */
static void sync_directory(char *path)
{
    char *slash = strrchr(path, '/');
    char saved = '\0';
    if (slash != NULL) {
        saved = slash[1];
        slash[1] = '\0';
    }
    int fd = open(slash != NULL ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (slash != NULL) {
        slash[1] = saved;
    }
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
}

eplb_status eplb_file_writer_commit(eplb_file_writer *writer, eplb_error *error)
{
    if (writer->failed || writer->fd < 0) {
        return eplb_error_set(error, EPLB_ERROR_IO, "%s: an earlier write failed", writer->target);
    }
    writer->failed = true; /* until the end of this function */
    if (writer->temporary != NULL && fsync(writer->fd) != 0) {
        return io_error(error, writer->target, "flush");
    }
    int fd = writer->fd;
    writer->fd = -1;
    if (close(fd) != 0) {
        return io_error(error, writer->target, "close");
    }
    if (writer->temporary != NULL) {
        if (rename(writer->temporary, writer->final) != 0) {
            return io_error(error, writer->target, "rename into place");
        }
        eplb_free(&writer->hooks, writer->temporary);
        writer->temporary = NULL;
        sync_directory(writer->final);
    }
    writer->failed = false;
    return EPLB_OK;
}

void eplb_file_writer_destroy(eplb_file_writer **writer)
{
    if (writer == NULL || *writer == NULL) {
        return;
    }
    eplb_file_writer *w = *writer;
    eplb_hooks hooks = w->hooks;
    if (w->fd >= 0) {
        (void)close(w->fd);
    }
    if (w->temporary != NULL) {
        (void)unlink(w->temporary);
    }
    eplb_free(&hooks, w->temporary);
    eplb_free(&hooks, w->final);
    eplb_free(&hooks, w->target);
    eplb_free(&hooks, w);
    *writer = NULL;
}

eplb_status eplb_file_write(const eplb_hooks *hooks, const char *path, const void *data,
                            size_t size, eplb_error *error)
{
    eplb_file_writer *writer;
    eplb_status status = eplb_file_writer_create(&writer, hooks, path, error);
    if (status != EPLB_OK) {
        return status;
    }
    status = eplb_file_writer_append(writer, data, size, error);
    if (status == EPLB_OK) {
        status = eplb_file_writer_commit(writer, error);
    }
    eplb_file_writer_destroy(&writer);
    return status;
}
