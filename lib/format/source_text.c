/* SPDX-License-Identifier: MIT */
#include "format/source_text.h"

#include <sys/stat.h>

#include "base/memory.h"
#include "format/display_name.h"
#include "format/number.h"

static eplb_status bad_text(const char *text, const char *what, eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "source '%s': %s",
                          eplb_display_name_of(text).text, what);
}

static bool exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

static char *copy(const eplb_hooks *hooks, const char *text, size_t length)
{
    char *copied = eplb_alloc(hooks, length + 1, 1);
    if (copied != NULL) {
        memcpy(copied, text, length);
        copied[length] = '\0';
    }
    return copied;
}

/* Takes NAME= off the front of *rest. */
static eplb_status take_name(eplb_source_text *self, const char *text, const char **rest,
                             eplb_error *error)
{
    size_t length = strcspn(text, "=/");
    if (text[length] != '=') {
        return EPLB_OK;
    }
    if (length == 0) {
        return bad_text(text, "the name before '=' is empty", error);
    }
    *rest = text + length + 1;
    self->name = copy(&self->hooks, text, length);
    return self->name != NULL ? EPLB_OK : eplb_out_of_memory(error);
}

/* Takes :WEIGHT off the end of `rest`. What has a '/' or ',' behind the last ':' is a path. */
static eplb_status take_weight(eplb_source_text *self, const char *text, char *rest,
                               eplb_error *error)
{
    char *colon = strrchr(rest, ':');
    if (colon == NULL || strpbrk(colon, "/,") != NULL) {
        return EPLB_OK;
    }
    double weight;
    const char *end = eplb_number_plain(colon + 1, &weight);
    if (end == NULL || *end != '\0' || weight <= 0.0) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "source '%s': no such file, and the weight '%s' is not a decimal "
                              "number above 0, such as 3 or 0.25",
                              eplb_display_name_of(text).text,
                              eplb_display_name_of(colon + 1).text);
    }
    self->weight = weight;
    *colon = '\0';
    return EPLB_OK;
}

/* Takes `paths` apart. */
static eplb_status take_paths(eplb_source_text *self, const char *text, char *paths,
                              eplb_error *error)
{
    bool is_one = exists(paths);
    eplb_status status = EPLB_OK;
    char *next = paths;
    while (status == EPLB_OK && next != NULL) {
        char *comma = is_one ? NULL : strchr(next, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        status = next[0] != '\0' ? eplb_source_text_add_path(self, text, next, error)
                                 : bad_text(text, "an empty path", error);
        next = comma != NULL ? comma + 1 : NULL;
    }
    return status;
}

/* `rest` is the text without its name, to be changed. */
static eplb_status take_rest(eplb_source_text *self, const char *text, char *rest,
                             eplb_error *error)
{
    eplb_status status = exists(rest) ? EPLB_OK : take_weight(self, text, rest, error);
    if (status == EPLB_OK && self->name == NULL) {
        self->name = copy(&self->hooks, rest, strlen(rest));
        status = self->name != NULL ? EPLB_OK : eplb_out_of_memory(error);
    }
    return status == EPLB_OK ? take_paths(self, text, rest, error) : status;
}

eplb_status eplb_source_text_parse(eplb_source_text *self, const eplb_hooks *hooks,
                                   const char *text, eplb_error *error)
{
    *self = (eplb_source_text){.hooks = *hooks, .weight = 1.0};
    const char *after_name = text;
    eplb_status status = exists(text) ? EPLB_OK : take_name(self, text, &after_name, error);
    if (status == EPLB_OK) {
        char *rest = copy(hooks, after_name, strlen(after_name));
        status = rest != NULL ? take_rest(self, text, rest, error) : eplb_out_of_memory(error);
        eplb_free(hooks, rest);
    }
    if (status != EPLB_OK) {
        eplb_source_text_clear(self);
    }
    return status;
}

void eplb_source_text_clear(eplb_source_text *self)
{
    for (int32_t i = 0; i < self->files; i++) {
        eplb_free(&self->hooks, self->paths[i]);
    }
    eplb_free(&self->hooks, self->paths);
    eplb_free(&self->hooks, self->ids);
    eplb_free(&self->hooks, self->name);
    self->files = self->capacity = 0;
    self->paths = NULL;
    self->ids = NULL;
    self->name = NULL;
}

bool eplb_is_standard_input(const char *path)
{
    return strcmp(path, "-") == 0;
}

const char *eplb_source_text_stream(const eplb_source_text *self)
{
    for (int32_t i = 0; i < self->files; i++) {
        struct stat status;
        if (eplb_is_standard_input(self->paths[i]) ||
            (stat(self->paths[i], &status) == 0 && !S_ISREG(status.st_mode) &&
             !S_ISDIR(status.st_mode))) {
            return self->paths[i];
        }
    }
    return NULL;
}
