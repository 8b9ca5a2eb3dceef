/* SPDX-License-Identifier: MIT */
/* The names in a directory. */
#ifndef EPLB_FORMAT_LISTING_H
#define EPLB_FORMAT_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

typedef struct eplb_listing {
    eplb_hooks hooks;
    char *directory;
    char **names; /* [count] but those that begin with a dot, runs of digits ordered as numbers */
    int32_t count;
    int32_t capacity;
} eplb_listing;

/* EPLB_ERROR_LIMIT beyond EPLB_MAX_SOURCE_FILES. On failure nothing is left to clear. */
eplb_status eplb_listing_read(eplb_listing *listing, const eplb_hooks *hooks, const char *directory,
                              eplb_error *error);
void eplb_listing_clear(eplb_listing *listing);

/* The path of one of its names, to be freed; NULL without memory. */
char *eplb_listing_path(const eplb_listing *listing, const char *name);

/* Whether a name is `prefix`, a number in decimal digits (0..INT32_MAX) and `suffix`, which .gz or
 * .zst may follow. */
bool eplb_listing_number(const char *name, const char *prefix, const char *suffix, int32_t *number);

bool eplb_is_directory(const char *path);

#endif
