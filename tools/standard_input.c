/* SPDX-License-Identifier: MIT */
#include "standard_input.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where a source [NAME=]PATH[,PATH...][:WEIGHT] has "-" as a path; NULL: nowhere. */
static const char *find_dash(const char *source)
{
    for (const char *dash = strchr(source, '-'); dash != NULL; dash = strchr(dash + 1, '-')) {
        bool begins = dash == source || dash[-1] == '=' || dash[-1] == ',';
        bool ends = dash[1] == '\0' || dash[1] == ',' || dash[1] == ':';
        if (begins && ends) {
            return dash;
        }
    }
    return NULL;
}

/* A file whose name is the whole text is that file. */
static const char *standard_input_in(const char *source)
{
    const char *dash = find_dash(source);
    return dash != NULL && (strcmp(source, "-") == 0 || access(source, F_OK) != 0) ? dash : NULL;
}

int32_t uses_of_standard_input(const text_list *sources, const char *file)
{
    int32_t uses = file != NULL && strcmp(file, "-") == 0 ? 1 : 0;
    for (int32_t i = 0; i < sources->count; i++) {
        uses += standard_input_in(sources->items[i]) != NULL ? 1 : 0;
    }
    return uses;
}

static eplb_status io_error(const char *what, eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_IO, "standard input: %s: %s", what, strerror(errno));
}

/* The descriptor of a new file that vanishes when it is closed; -1 on failure. */
static int open_nameless(void)
{
    const char *directory = getenv("TMPDIR");
    char path[4096];
    int length = snprintf(path, sizeof(path), "%s/eplb-XXXXXX",
                          directory != NULL && *directory != '\0' ? directory : "/tmp");
    if (length < 0 || (size_t)length >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int file = mkstemp(path);
    if (file >= 0) {
        unlink(path);
    }
    return file;
}

static bool write_all(int file, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(file, data, size);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        data += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static eplb_status copy_standard_input(int file, eplb_error *error)
{
    char buffer[65536];
    ssize_t size;
    do {
        size = read(STDIN_FILENO, buffer, sizeof(buffer));
        if (size < 0 && errno != EINTR) {
            return io_error("cannot read", error);
        }
        if (size > 0 && !write_all(file, buffer, (size_t)size)) {
            return io_error("cannot keep a copy in TMPDIR or /tmp", error);
        }
    } while (size != 0);
    return EPLB_OK;
}

static void name_file(int file, char *name, size_t size)
{
    snprintf(name, size, "/dev/fd/%d", file);
}

/* The source with the file in the place of "-"; one without a name keeps its own as a name. */
static eplb_status replace_dash(rereadable *self, const char *source, const char *dash,
                                eplb_error *error)
{
    char path[32];
    name_file(self->file, path, sizeof(path));
    bool named = memchr(source, '=', (size_t)(dash - source)) != NULL;
    size_t size = strlen(source) + sizeof(path) + sizeof("standard input=");
    self->text = malloc(size);
    if (self->text == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    snprintf(self->text, size, "%s%.*s%s%s", named ? "" : "standard input=", (int)(dash - source),
             source, path, dash + 1);
    return EPLB_OK;
}

static bool is_pipe(const char *path, size_t length)
{
    char name[4096];
    struct stat status;
    return (size_t)snprintf(name, sizeof(name), "%.*s", (int)length, path) < sizeof(name) &&
           stat(name, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* Looks at the paths of a source, the last with and without what may be its weight. */
static eplb_status refuse_pipes(const char *source, eplb_error *error)
{
    size_t name = strcspn(source, "=/");
    const char *path = source[name] == '=' ? source + name + 1 : source;
    while (path != NULL) {
        size_t length = strcspn(path, ",");
        size_t without_weight = strcspn(path, ",:");
        bool whole = is_pipe(path, length);
        if (whole || is_pipe(path, without_weight)) {
            return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                  "%.*s: a pipe, which can be read once, but it is read twice: "
                                  "give it as standard input (-) or as a file",
                                  (int)(whole ? length : without_weight), path);
        }
        path = path[length] == ',' ? path + length + 1 : NULL;
    }
    return EPLB_OK;
}

eplb_status rereadable_open(rereadable *self, const char *source, eplb_error *error)
{
    *self = (rereadable){.file = -1};
    const char *dash = standard_input_in(source);
    eplb_status status = refuse_pipes(source, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (dash == NULL) {
        self->text = strdup(source);
        return self->text != NULL ? EPLB_OK
                                  : eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    self->file = open_nameless();
    if (self->file < 0) {
        return io_error("cannot make a file in TMPDIR or /tmp", error);
    }
    status = copy_standard_input(self->file, error);
    return status == EPLB_OK ? replace_dash(self, source, dash, error) : status;
}

void rereadable_close(rereadable *self)
{
    if (self->file >= 0) {
        close(self->file);
    }
    free(self->text);
    *self = (rereadable){.file = -1};
}

void rereadable_explain(const rereadable *self, eplb_error *error)
{
    if (self->file < 0) {
        return;
    }
    char path[32];
    name_file(self->file, path, sizeof(path));
    eplb_error given = *error;
    char *place = strstr(given.message, path);
    if (place != NULL) {
        eplb_error_set(error, (eplb_status)given.status, "%.*s%s%s", (int)(place - given.message),
                       given.message, "standard input", place + strlen(path));
    }
}
