/* SPDX-License-Identifier: MIT */
/* Half a sum is no sum: which ranks a source has, and which are missing. */
#include <stdio.h>

#include "base/memory.h"
#include "format/display_name.h"
#include "format/one_model.h"
#include "format/warn.h"

#define WORD_BITS 64

/* No job has more ranks; a file that says so is broken. */
#define MOST_RANKS 1048576

static bool is_seen(const eplb_ranks *ranks, int32_t rank)
{
    size_t word = (size_t)rank / WORD_BITS;
    return word < ranks->words && (ranks->seen[word] >> (rank % WORD_BITS) & 1) != 0;
}

static bool make_room(eplb_ranks *ranks, const eplb_hooks *hooks, int32_t rank)
{
    size_t words = (size_t)rank / WORD_BITS + 1;
    if (words <= ranks->words) {
        return true;
    }
    uint64_t *seen = eplb_realloc(hooks, ranks->seen, words, sizeof(*seen));
    if (seen == NULL) {
        return false;
    }
    memset(seen + ranks->words, 0, (words - ranks->words) * sizeof(*seen));
    ranks->seen = seen;
    ranks->words = words;
    return true;
}

eplb_status eplb_ranks_add(eplb_ranks *ranks, const eplb_hooks *hooks, const char *path,
                           int32_t rank, eplb_error *error)
{
    ranks->files++;
    if (rank < 0) {
        ranks->silent = ranks->silent != NULL ? ranks->silent : path;
        return EPLB_OK;
    }
    if (rank >= MOST_RANKS) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT, "%s: rank %d not below %d",
                              eplb_display_name_of(path).text, rank, MOST_RANKS);
    }
    if (is_seen(ranks, rank)) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: counts of rank %d, as another file of the source: they would be "
                              "added twice",
                              eplb_display_name_of(path).text, rank);
    }
    if (!make_room(ranks, hooks, rank)) {
        return eplb_out_of_memory(error);
    }
    ranks->seen[rank / WORD_BITS] |= UINT64_C(1) << (rank % WORD_BITS);
    ranks->path = ranks->path != NULL ? ranks->path : path;
    ranks->largest = rank > ranks->largest ? rank : ranks->largest;
    ranks->known++;
    return EPLB_OK;
}

/* Appends " 2", or ", 2"; "..." when there is no room. */
static void add_rank(char *list, size_t size, int32_t rank)
{
    size_t used = strlen(list);
    if (used + 20 < size) {
        snprintf(list + used, size - used, "%s %d", used > 0 ? "," : "", rank);
    } else if (used + 4 < size && list[used - 1] != '.') {
        strcat(list, "...");
    }
}

eplb_status eplb_ranks_check(const eplb_ranks *ranks, eplb_error *error)
{
    if (ranks->known > 0 && ranks->silent != NULL) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: does not say of which rank its counts are, but %s does: not of "
                              "one recording",
                              eplb_display_name_of(ranks->silent).text,
                              eplb_display_name_of(ranks->path).text);
    }
    if (ranks->known == 0 || ranks->known == ranks->largest + 1) {
        return EPLB_OK;
    }
    char list[100] = "";
    int32_t missing = ranks->largest + 1 - ranks->known;
    for (int32_t r = 0; r < ranks->largest; r++) {
        if (!is_seen(ranks, r)) {
            add_rank(list, sizeof(list), r);
        }
    }
    return eplb_error_set(error, EPLB_ERROR_DATA,
                          "%s: %d file%s with ranks up to %d, but none of rank%s%s: a part of the "
                          "ranks is no sum of all",
                          eplb_display_name_of(ranks->path).text, ranks->known,
                          ranks->known == 1 ? "" : "s", ranks->largest, missing == 1 ? "" : "s",
                          list);
}

void eplb_ranks_warn(const eplb_ranks *ranks, const eplb_hooks *hooks)
{
    if (ranks->files == 1 && ranks->known == 1) {
        eplb_warn(hooks, "%s: counts of rank %d only: are there files of other ranks?",
                  eplb_display_name_of(ranks->path).text, ranks->largest);
    }
}

void eplb_ranks_clear(eplb_ranks *ranks, const eplb_hooks *hooks)
{
    eplb_free(hooks, ranks->seen);
    *ranks = (eplb_ranks){0};
}
