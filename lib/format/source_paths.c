/* SPDX-License-Identifier: MIT */
/* The files that a path of a source stands for. */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "format/display_name.h"
#include "format/source_text.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Steps over a number: *digits is its first digit that is not 0. Returns how many follow. */
static size_t take_number(const char **text, const char **digits)
{
    *text += strspn(*text, "0");
    *digits = *text;
    *text += strspn(*text, "0123456789");
    return (size_t)(*text - *digits);
}

/* Compares names as people order them: runs of digits as numbers, the rest byte by byte. */
static int compare_names(const char *a, const char *b)
{
    const char *first = a;
    const char *second = b;
    while (*first != '\0' && *second != '\0') {
        if (!is_digit(*first) || !is_digit(*second)) {
            if (*first != *second) {
                return (unsigned char)*first < (unsigned char)*second ? -1 : 1;
            }
            first++;
            second++;
            continue;
        }
        const char *digits[2];
        size_t length = take_number(&first, &digits[0]);
        size_t other = take_number(&second, &digits[1]);
        int order =
            length != other ? (length < other ? -1 : 1) : strncmp(digits[0], digits[1], length);
        if (order != 0) {
            return order;
        }
    }
    if (*first != *second) {
        return *first == '\0' ? -1 : 1;
    }
    return strcmp(a, b);
}

static bool make_room(eplb_source_text *self)
{
    if (self->files < self->capacity) {
        return true;
    }
    size_t capacity = self->capacity > 0 ? 2 * (size_t)self->capacity : 8;
    char **paths = eplb_realloc(&self->hooks, self->paths, capacity, sizeof(*paths));
    if (paths == NULL) {
        return false;
    }
    self->paths = paths;
    eplb_file_id *ids = eplb_realloc(&self->hooks, self->ids, capacity, sizeof(*ids));
    if (ids == NULL) {
        return false;
    }
    self->ids = ids;
    self->capacity = (int32_t)capacity;
    return true;
}

static eplb_file_id id_of(const char *path)
{
    struct stat entry;
    bool is_file =
        !eplb_is_standard_input(path) && stat(path, &entry) == 0 && S_ISREG(entry.st_mode);
    return is_file ? (eplb_file_id){.device = entry.st_dev, .number = entry.st_ino}
                   : (eplb_file_id){0};
}

/* Puts a path of its own memory into the list at `place`. */
static eplb_status insert_path(eplb_source_text *self, int32_t place, const char *directory,
                               const char *name, eplb_error *error)
{
    if (self->files == EPLB_MAX_SOURCE_FILES) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT, "%s: more than %d files in a source",
                              eplb_display_name_of(directory).text, EPLB_MAX_SOURCE_FILES);
    }
    if (!make_room(self)) {
        return eplb_out_of_memory(error);
    }
    size_t length = strlen(directory);
    char *path = eplb_alloc(&self->hooks, length + strlen(name) + 2, 1);
    if (path == NULL) {
        return eplb_out_of_memory(error);
    }
    memcpy(path, directory, length);
    if (name[0] != '\0' && directory[length - 1] != '/') {
        path[length++] = '/';
    }
    strcpy(path + length, name);
    size_t behind = (size_t)(self->files - place);
    memmove(self->paths + place + 1, self->paths + place, behind * sizeof(*self->paths));
    memmove(self->ids + place + 1, self->ids + place, behind * sizeof(*self->ids));
    self->paths[place] = path;
    self->ids[place] = id_of(path);
    self->files++;
    return EPLB_OK;
}

/* Where a name of a directory goes among those of it that are in the list from `first` on.
 * `prefix` is the length of what precedes their names. */
static int32_t place_of(const eplb_source_text *self, int32_t first, size_t prefix,
                        const char *name)
{
    int32_t low = first;
    int32_t high = self->files;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (compare_names(self->paths[middle] + prefix, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static eplb_status add_entries(eplb_source_text *self, const char *directory, DIR *entries,
                               eplb_error *error)
{
    size_t length = strlen(directory);
    size_t prefix = directory[length - 1] == '/' ? length : length + 1;
    int32_t first = self->files;
    const struct dirent *entry;
    eplb_status status = EPLB_OK;
    while (errno = 0, status == EPLB_OK && (entry = readdir(entries)) != NULL) {
        if (entry->d_name[0] != '.') {
            int32_t place = place_of(self, first, prefix, entry->d_name);
            status = insert_path(self, place, directory, entry->d_name, error);
        }
    }
    if (status == EPLB_OK && errno != 0) {
        return eplb_error_set(error, EPLB_ERROR_IO, "%s: cannot list: %s",
                              eplb_display_name_of(directory).text, strerror(errno));
    }
    if (status == EPLB_OK && self->files == first) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: a directory without files",
                              eplb_display_name_of(directory).text);
    }
    return status;
}

static eplb_status add_directory(eplb_source_text *self, const char *directory, eplb_error *error)
{
    DIR *entries = opendir(directory);
    if (entries == NULL) {
        return eplb_error_set(error, EPLB_ERROR_IO, "%s: cannot open: %s",
                              eplb_display_name_of(directory).text, strerror(errno));
    }
    eplb_status status = add_entries(self, directory, entries, error);
    (void)closedir(entries);
    return status;
}

static bool same_file(const eplb_source_text *self, int32_t i, int32_t j)
{
    const eplb_file_id *a = &self->ids[i];
    const eplb_file_id *b = &self->ids[j];
    if (a->number != 0 && b->number != 0) {
        return a->number == b->number && a->device == b->device;
    }
    return strcmp(self->paths[i], self->paths[j]) == 0;
}

/* A file that came in twice would count twice: by two links, too. Files `first` and on are new. */
static eplb_status refuse_repeated(const eplb_source_text *self, int32_t first, const char *text,
                                   eplb_error *error)
{
    for (int32_t i = first; i < self->files; i++) {
        for (int32_t j = 0; j < i; j++) {
            if (!same_file(self, i, j)) {
                continue;
            }
            eplb_display_name path = eplb_display_name_of(self->paths[i]);
            eplb_display_name other = eplb_display_name_of(self->paths[j]);
            bool one_name = strcmp(self->paths[i], self->paths[j]) == 0;
            return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "source '%s': %s twice%s%s",
                                  eplb_display_name_of(text).text, path.text,
                                  one_name ? "" : ", also as ", one_name ? "" : other.text);
        }
    }
    return EPLB_OK;
}

eplb_status eplb_source_text_add_path(eplb_source_text *self, const char *text, const char *path,
                                      eplb_error *error)
{
    int32_t first = self->files;
    struct stat entry;
    bool is_directory =
        !eplb_is_standard_input(path) && stat(path, &entry) == 0 && S_ISDIR(entry.st_mode);
    eplb_status status =
        is_directory ? add_directory(self, path, error) : insert_path(self, first, path, "", error);
    return status == EPLB_OK ? refuse_repeated(self, first, text, error) : status;
}
