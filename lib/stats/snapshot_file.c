/* SPDX-License-Identifier: MIT */
#include "stats/snapshot_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <eplb/file.h>

#include "base/memory.h"
#include "base/range.h"

#define FIRST_CAPACITY ((size_t)64 << 10)

eplb_status eplb_snapshot_write(const eplb_snapshot *snapshot, const eplb_hooks *hooks,
                                const char *path, eplb_error *error)
{
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    uint8_t *bytes;
    size_t size;
    eplb_status status = eplb_snapshot_pack(snapshot, &resolved, &bytes, &size, error);
    if (status == EPLB_OK) {
        status = eplb_file_write(&resolved, path, bytes, size, error);
        eplb_free(&resolved, bytes);
    }
    return status;
}

/* A file's bytes so far. */
typedef struct content {
    uint8_t *bytes; /* [capacity] */
    size_t size;
    size_t capacity;
} content;

/* Doubling follows what was read, not what a file claims to have. */
static bool make_room(content *c, const eplb_hooks *hooks)
{
    if (c->size < c->capacity) {
        return true;
    }
    size_t capacity = FIRST_CAPACITY;
    if (c->capacity > 0 && !eplb_size_mul(c->capacity, 2, &capacity)) {
        return false;
    }
    uint8_t *bytes = eplb_realloc(hooks, c->bytes, capacity, 1);
    if (bytes == NULL) {
        return false;
    }
    c->bytes = bytes;
    c->capacity = capacity;
    return true;
}

static eplb_status read_all(content *c, const eplb_hooks *hooks, int fd, const char *path,
                            int64_t max_bytes, eplb_error *error)
{
    for (;;) {
        if (!make_room(c, hooks)) {
            return eplb_out_of_memory(error);
        }
        ssize_t got = read(fd, c->bytes + c->size, c->capacity - c->size);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return eplb_error_set(error, EPLB_ERROR_IO, "%s: cannot read: %s", path,
                                  strerror(errno));
        }
        if (got == 0) {
            return EPLB_OK;
        }
        c->size += (size_t)got;
        if (max_bytes >= 0 && c->size > (uint64_t)max_bytes) {
            return eplb_error_set(error, EPLB_ERROR_LIMIT, "%s: more than %lld bytes", path,
                                  (long long)max_bytes);
        }
    }
}

static eplb_status check_arguments(eplb_snapshot **out, const char *path, int64_t max_bytes,
                                   eplb_error *error)
{
    eplb_status status = eplb_check_given("snapshot", "output", out, error);
    if (status == EPLB_OK) {
        status = eplb_check_given("snapshot", "path", path, error);
    }
    return status == EPLB_OK
               ? eplb_check_range("snapshot", "largest size", max_bytes, -1, INT64_MAX, error)
               : status;
}

eplb_status eplb_snapshot_read(eplb_snapshot **out, const eplb_hooks *hooks, const char *path,
                               int64_t max_bytes, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    eplb_status status = check_arguments(out, path, max_bytes, error);
    if (status != EPLB_OK) {
        return status;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return eplb_error_set(error, EPLB_ERROR_IO, "%s: cannot open: %s", path, strerror(errno));
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    content c = {0};
    status = read_all(&c, &resolved, fd, path, max_bytes, error);
    (void)close(fd);
    if (status == EPLB_OK) {
        status = eplb_snapshot_decode(out, &resolved, path, c.bytes, c.size, error);
    }
    eplb_free(&resolved, c.bytes);
    return status;
}
