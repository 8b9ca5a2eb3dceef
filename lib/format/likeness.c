/* SPDX-License-Identifier: MIT */
#include "format/likeness.h"

#include "format/warn.h"

/* The widest row that is looked at. */
#define MOST_IDS 8192

/* Formats with files of both kinds tell them apart by themselves. */
static bool has_only(const eplb_format *format, uint32_t wanted)
{
    uint32_t other = wanted ^ (EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_READS_PLACEMENT);
    return eplb_format_has_files(format, wanted) && !eplb_format_has_files(format, other);
}

const eplb_format *eplb_likeness_find(const eplb_reading *reading, uint32_t wanted)
{
    if (reading->options.format != NULL || reading->listing != NULL) {
        return NULL;
    }
    eplb_probe probe = eplb_reading_probe(reading, wanted);
    const eplb_format *format;
    for (size_t i = 0; (format = eplb_format_at(i)) != NULL; i++) {
        if (has_only(format, wanted) && format->probe(&probe)) {
            return format;
        }
    }
    return NULL;
}

/* Whether a row holds ids, from 0 on and each one somewhere: the 0 and 1 of cells, or for each two
 * slots at least one. Counts almost never do, but those of few tokens are small numbers, too. */
static bool holds_ids(const eplb_counts_row *row)
{
    uint64_t seen[MOST_IDS / 64] = {0};
    int32_t ids = 0; /* different ones */
    int32_t end = 0; /* one more than the largest */
    if (row->length > MOST_IDS) {
        return false;
    }
    for (int32_t i = 0; i < row->length; i++) {
        if (!(row->counts[i] < row->length)) {
            return false;
        }
        int32_t id = (int32_t)row->counts[i];
        if ((double)id != row->counts[i]) {
            return false;
        }
        uint64_t bit = UINT64_C(1) << (id % 64);
        ids += (seen[id / 64] & bit) == 0 ? 1 : 0;
        seen[id / 64] |= bit;
        end = id >= end ? id + 1 : end;
    }
    return ids == end && (ids == 2 || (ids > 2 && ids >= row->length - ids));
}

void eplb_map_likeness_add(eplb_map_likeness *likeness, const eplb_counts_row *row)
{
    if (likeness->format != NULL && !holds_ids(row)) {
        likeness->format = NULL;
    }
    likeness->width = row->length;
}

void eplb_map_likeness_warn(const eplb_map_likeness *likeness, const eplb_reading *reading)
{
    if (likeness->format != NULL && likeness->width > 0) {
        eplb_warn(&reading->hooks,
                  "%s: looks like a placement (%s), not counts of %d experts: its rows hold the "
                  "numbers from 0 on and none is left out",
                  reading->input.name, likeness->format->name, likeness->width);
    }
}

/* Whether most numbers are above any id that a placement with so many slots can have. */
static bool exceeds_ids(const eplb_map *map, int32_t *largest)
{
    int64_t above = 0;
    *largest = -1;
    for (int32_t l = 0; l < map->layers; l++) {
        const int32_t *row = eplb_map_row(map, l);
        for (int32_t s = 0; s < map->slots; s++) {
            above += row[s] >= map->slots ? 1 : 0;
            *largest = row[s] > *largest ? row[s] : *largest;
        }
    }
    return above > (int64_t)map->layers * map->slots / 2;
}

void eplb_warn_of_counts(const eplb_map *map, const eplb_format *counts)
{
    int32_t largest;
    if (counts != NULL && exceeds_ids(map, &largest)) {
        eplb_warn(&map->hooks,
                  "%s: looks like counts (%s) of [%d][%d], not a placement: expert ids up to %d in "
                  "%d slots",
                  map->name, counts->name, map->layers, map->slots, largest, map->slots);
    }
}
