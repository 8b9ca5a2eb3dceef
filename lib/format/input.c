/* SPDX-License-Identifier: MIT */
#include "format/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "format/codec.h"
#include "format/display_name.h"

#define BUFFER_SIZE ((size_t)128 << 10)

static eplb_status io_error(eplb_error *error, const char *name, const char *what)
{
    return eplb_error_set(error, EPLB_ERROR_IO, "%s: cannot %s: %s", name, what, strerror(errno));
}

static eplb_status open_file(eplb_input *input, const char *path, eplb_error *error)
{
    if (strcmp(path, "-") == 0) {
        input->fd = STDIN_FILENO;
        off_t here = lseek(STDIN_FILENO, 0, SEEK_CUR);
        input->origin = here > 0 ? (uint64_t)here : 0;
        return EPLB_OK;
    }
    input->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0) {
        return io_error(error, input->name, "open");
    }
    input->owns_fd = true;
    struct stat status;
    if (fstat(input->fd, &status) == 0 && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return io_error(error, input->name, "read");
    }
    return EPLB_OK;
}

eplb_status eplb_input_open(eplb_input *input, const eplb_hooks *hooks, const char *path,
                            eplb_error *error)
{
    eplb_input_from_memory(input, NULL, NULL, 0);
    input->hooks = *hooks;
    input->at_end = false;
    eplb_display_name name = eplb_display_name_of(path);
    input->name = eplb_alloc(hooks, strlen(name.text) + 1, 1);
    input->buffer = eplb_alloc(hooks, BUFFER_SIZE + 1, 1);
    eplb_status status = EPLB_OK;
    if (input->name == NULL || input->buffer == NULL) {
        status = eplb_out_of_memory(error);
    } else {
        memcpy(input->name, name.text, strlen(name.text) + 1);
        input->buffer[0] = '\0';
        input->start = input->cursor = input->limit = input->buffer;
        status = open_file(input, path, error);
    }
    if (status == EPLB_OK) {
        status = eplb_codec_wrap(input, error);
    }
    if (status != EPLB_OK) {
        eplb_input_close(input);
    }
    return status;
}

void eplb_input_from_memory(eplb_input *input, char *name, const char *data, size_t size)
{
    memset(input, 0, sizeof(*input));
    input->name = name;
    input->fd = -1;
    input->at_end = true;
    input->start = input->cursor = data;
    input->limit = data != NULL ? data + size : NULL;
    input->line = 1;
}

eplb_status eplb_input_from_stream(eplb_input *input, const eplb_hooks *hooks, char *name,
                                   eplb_stream *stream, eplb_error *error)
{
    char *buffer = eplb_alloc(hooks, BUFFER_SIZE + 1, 1);
    if (buffer == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_hooks kept = *hooks;
    buffer[0] = '\0';
    eplb_input_from_memory(input, name, buffer, 0);
    input->hooks = kept;
    input->buffer = buffer;
    input->at_end = false;
    input->stream = stream;
    return EPLB_OK;
}

void eplb_input_close(eplb_input *input)
{
    if (input->stream != NULL) {
        input->stream->close(input->stream);
        input->stream = NULL;
    }
    if (input->owns_fd) {
        (void)close(input->fd);
        input->owns_fd = false;
    }
    eplb_free(&input->hooks, input->buffer);
    eplb_free(&input->hooks, input->name);
    input->buffer = input->name = NULL;
}

/* Reads what comes next, at most `size` bytes. */
static eplb_status read_bytes(eplb_input *input, char *data, size_t size, size_t *got,
                              eplb_error *error)
{
    *got = 0;
    if (input->stream != NULL) {
        return input->stream->read(input->stream, data, size, got, error);
    }
    ssize_t result;
    do {
        result = read(input->fd, data, size);
    } while (result < 0 && errno == EINTR);
    if (result < 0) {
        return io_error(error, input->name, "read");
    }
    *got = (size_t)result;
    return EPLB_OK;
}

eplb_status eplb_input_fill(eplb_input *input, eplb_error *error)
{
    size_t unread = eplb_input_unread(input);
    if (input->at_end || unread == BUFFER_SIZE) {
        return EPLB_OK;
    }
    input->start_offset = eplb_input_offset(input, input->cursor);
    memmove(input->buffer, input->cursor, unread);
    input->start = input->cursor = input->buffer;
    size_t added;
    eplb_status status =
        read_bytes(input, input->buffer + unread, BUFFER_SIZE - unread, &added, error);
    input->limit = input->buffer + unread + added;
    input->buffer[unread + added] = '\0';
    if (status != EPLB_OK) {
        return status;
    }
    input->at_end = added == 0;
    return EPLB_OK;
}

eplb_status eplb_input_need(eplb_input *input, size_t size, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    while (status == EPLB_OK && eplb_input_unread(input) < size && !input->at_end) {
        status = eplb_input_fill(input, error);
    }
    return status;
}

eplb_status eplb_input_skip_bom(eplb_input *input, eplb_error *error)
{
    eplb_status status = eplb_input_need(input, 3, error);
    if (status == EPLB_OK && eplb_input_unread(input) >= 3 &&
        memcmp(input->cursor, "\xEF\xBB\xBF", 3) == 0) {
        input->cursor += 3;
        input->line_offset = eplb_input_offset(input, input->cursor);
    }
    return status;
}

bool eplb_input_size(const eplb_input *input, uint64_t *size)
{
    struct stat status;
    if (input->stream != NULL || fstat(input->fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        (uint64_t)status.st_size < input->origin) {
        return false;
    }
    *size = (uint64_t)status.st_size - input->origin;
    return true;
}

eplb_status eplb_input_refuse_stream(const eplb_input *input, const char *what, eplb_error *error)
{
    bool is_packed = input->stream != NULL;
    return eplb_error_set(
        error, EPLB_ERROR_UNSUPPORTED, "%s: %s cannot be read %s", input->name, what,
        is_packed ? "while it is compressed: unpack it first, with gunzip or unzstd"
                  : "from a pipe: give it as a file");
}

eplb_status eplb_input_seek(eplb_input *input, uint64_t offset, eplb_error *error)
{
    if (offset >= input->start_offset && offset <= eplb_input_offset(input, input->limit)) {
        input->cursor = input->start + (offset - input->start_offset);
        return EPLB_OK;
    }
    if (lseek(input->fd, (off_t)(input->origin + offset), SEEK_SET) < 0) {
        return io_error(error, input->name, "seek");
    }
    input->buffer[0] = '\0';
    input->start = input->cursor = input->limit = input->buffer;
    input->start_offset = offset;
    input->at_end = false;
    return EPLB_OK;
}

eplb_status eplb_input_read_at(const eplb_input *input, void *data, size_t size, uint64_t offset,
                               eplb_error *error)
{
    char *next = data;
    while (size > 0) {
        ssize_t got = pread(input->fd, next, size, (off_t)(input->origin + offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return io_error(error, input->name, "read");
        }
        if (got == 0) {
            return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: byte %llu: the file ends too early",
                                  input->name, (unsigned long long)offset);
        }
        next += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return EPLB_OK;
}
