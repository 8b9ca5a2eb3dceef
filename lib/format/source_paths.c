/* SPDX-License-Identifier: MIT */
/* The files that a path of a source stands for. */
#include <sys/stat.h>

#include "base/memory.h"
#include "format/display_name.h"
#include "format/format.h"
#include "format/source_text.h"

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
    bool can_be_told = !eplb_is_standard_input(path) && stat(path, &entry) == 0 &&
                       (S_ISREG(entry.st_mode) || S_ISDIR(entry.st_mode));
    return can_be_told ? (eplb_file_id){.device = entry.st_dev, .number = entry.st_ino}
                       : (eplb_file_id){0};
}

/* Appends a path, which becomes the list's even on failure. */
static eplb_status append_path(eplb_source_text *self, char *path, eplb_error *error)
{
    if (path == NULL || !make_room(self)) {
        eplb_free(&self->hooks, path);
        return eplb_out_of_memory(error);
    }
    if (self->files == EPLB_MAX_SOURCE_FILES) {
        eplb_status status =
            eplb_error_set(error, EPLB_ERROR_LIMIT, "%s: more than %d files in a source",
                           eplb_display_name_of(path).text, EPLB_MAX_SOURCE_FILES);
        eplb_free(&self->hooks, path);
        return status;
    }
    self->paths[self->files] = path;
    self->ids[self->files] = id_of(path);
    self->files++;
    return EPLB_OK;
}

static eplb_status append_copy(eplb_source_text *self, const char *path, eplb_error *error)
{
    size_t size = strlen(path) + 1;
    char *copy = eplb_alloc(&self->hooks, size, 1);
    return append_path(self, copy != NULL ? memcpy(copy, path, size) : NULL, error);
}

/* A directory is one recording if a format says so, else its files are one each. */
static eplb_status add_directory(eplb_source_text *self, const char *directory, eplb_error *error)
{
    eplb_listing listing;
    eplb_status status = eplb_listing_read(&listing, &self->hooks, directory, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (listing.count == 0) {
        status = eplb_error_set(error, EPLB_ERROR_DATA, "%s: a directory without files",
                                eplb_display_name_of(directory).text);
    } else if (eplb_is_recording(&listing)) {
        status = append_copy(self, directory, error);
    } else {
        for (int32_t i = 0; i < listing.count && status == EPLB_OK; i++) {
            status = append_path(self, eplb_listing_path(&listing, listing.names[i]), error);
        }
    }
    eplb_listing_clear(&listing);
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
    eplb_status status =
        eplb_is_directory(path) ? add_directory(self, path, error) : append_copy(self, path, error);
    return status == EPLB_OK ? refuse_repeated(self, first, text, error) : status;
}
