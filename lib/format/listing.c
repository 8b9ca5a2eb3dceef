/* SPDX-License-Identifier: MIT */
#include "format/listing.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <eplb/source.h>

#include "base/memory.h"
#include "format/display_name.h"

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

static int32_t place_of(const eplb_listing *listing, const char *name)
{
    int32_t low = 0;
    int32_t high = listing->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (compare_names(listing->names[middle], name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static char *copy(const eplb_hooks *hooks, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copied = eplb_alloc(hooks, size, 1);
    return copied != NULL ? memcpy(copied, text, size) : NULL;
}

static bool make_room(eplb_listing *listing)
{
    if (listing->count < listing->capacity) {
        return true;
    }
    size_t capacity = listing->capacity > 0 ? 2 * (size_t)listing->capacity : 8;
    char **names = eplb_realloc(&listing->hooks, listing->names, capacity, sizeof(*names));
    if (names == NULL) {
        return false;
    }
    listing->names = names;
    listing->capacity = (int32_t)capacity;
    return true;
}

static eplb_status add_name(eplb_listing *listing, const char *name, eplb_error *error)
{
    if (listing->count == EPLB_MAX_SOURCE_FILES) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT, "%s: more than %d files in a source",
                              eplb_display_name_of(listing->directory).text, EPLB_MAX_SOURCE_FILES);
    }
    char *copied = make_room(listing) ? copy(&listing->hooks, name) : NULL;
    if (copied == NULL) {
        return eplb_out_of_memory(error);
    }
    int32_t place = place_of(listing, name);
    memmove(listing->names + place + 1, listing->names + place,
            (size_t)(listing->count - place) * sizeof(*listing->names));
    listing->names[place] = copied;
    listing->count++;
    return EPLB_OK;
}

static eplb_status add_entries(eplb_listing *listing, DIR *entries, eplb_error *error)
{
    const char *shown = listing->directory;
    const struct dirent *entry;
    eplb_status status = EPLB_OK;
    while (errno = 0, status == EPLB_OK && (entry = readdir(entries)) != NULL) {
        if (entry->d_name[0] != '.') {
            status = add_name(listing, entry->d_name, error);
        }
    }
    if (status == EPLB_OK && errno != 0) {
        return eplb_error_set(error, EPLB_ERROR_IO, "%s: cannot list: %s",
                              eplb_display_name_of(shown).text, strerror(errno));
    }
    return status;
}

eplb_status eplb_listing_read(eplb_listing *listing, const eplb_hooks *hooks, const char *directory,
                              eplb_error *error)
{
    *listing = (eplb_listing){.hooks = *hooks, .directory = copy(hooks, directory)};
    if (listing->directory == NULL) {
        return eplb_out_of_memory(error);
    }
    DIR *entries = opendir(directory);
    eplb_status status =
        entries != NULL ? add_entries(listing, entries, error)
                        : eplb_error_set(error, EPLB_ERROR_IO, "%s: cannot open: %s",
                                         eplb_display_name_of(directory).text, strerror(errno));
    if (entries != NULL) {
        (void)closedir(entries);
    }
    if (status != EPLB_OK) {
        eplb_listing_clear(listing);
    }
    return status;
}

void eplb_listing_clear(eplb_listing *listing)
{
    for (int32_t i = 0; i < listing->count; i++) {
        eplb_free(&listing->hooks, listing->names[i]);
    }
    eplb_free(&listing->hooks, listing->names);
    eplb_free(&listing->hooks, listing->directory);
    listing->count = 0;
    listing->names = NULL;
    listing->directory = NULL;
}

char *eplb_listing_path(const eplb_listing *listing, const char *name)
{
    size_t length = strlen(listing->directory);
    char *path = eplb_alloc(&listing->hooks, length + strlen(name) + 2, 1);
    if (path == NULL) {
        return NULL;
    }
    memcpy(path, listing->directory, length);
    if (length > 0 && path[length - 1] != '/') {
        path[length++] = '/';
    }
    strcpy(path + length, name);
    return path;
}

/* Whether that is the suffix, perhaps with that of compressed files behind it. */
static bool is_suffix(const char *text, const char *suffix)
{
    size_t length = strlen(suffix);
    if (strncmp(text, suffix, length) != 0) {
        return false;
    }
    text += length;
    return text[0] == '\0' || strcmp(text, ".gz") == 0 || strcmp(text, ".zst") == 0;
}

bool eplb_listing_number(const char *name, const char *prefix, const char *suffix, int32_t *number)
{
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0 || !is_digit(name[length])) {
        return false;
    }
    int64_t value = 0;
    const char *next = name + length;
    for (; is_digit(*next) && value <= INT32_MAX; next++) {
        value = 10 * value + (*next - '0');
    }
    *number = (int32_t)value;
    return value <= INT32_MAX && is_suffix(next, suffix);
}

bool eplb_is_directory(const char *path)
{
    struct stat entry;
    return strcmp(path, "-") != 0 && stat(path, &entry) == 0 && S_ISDIR(entry.st_mode);
}
