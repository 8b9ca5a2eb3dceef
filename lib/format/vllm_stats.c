/* SPDX-License-Identifier: MIT */
/*
 * vLLM's load statistics of vllm-project/vllm#41141, which is not merged: JSON lines with the loads
 * of all slots in a step and the map that was in force. One line is in memory at a time. The map of
 * the last line is the placement.
 */
#include <inttypes.h>

#include "format/slot_reader.h"
#include "format/vllm_record.h"

static const char type[] = "eplb_load_stats";
static const char counts_key[] = "expert_load";

typedef struct vllm_stats {
    eplb_slot_reader reader;
    bool any; /* such a line was read */
} vllm_stats;

/* What one line says beside its step. */
typedef struct record {
    bool has_type;
    bool is_stats;
    bool has_version;
    bool has_ranks;
    int64_t version;
    int64_t ranks;
} record;

/* Counts may also stand behind an initial mapping, which can be all that a probe sees. */
static bool probe(const eplb_probe *probe)
{
    return eplb_vllm_probe(probe, type, counts_key) ||
           (probe->wanted == EPLB_FORMAT_READS_COUNTS &&
            eplb_vllm_probe(probe, EPLB_VLLM_MAPPING_TYPE, EPLB_VLLM_MAPPING_KEY));
}

/* A record of another type may have any keys, but what was already taken for ours cannot be given
 * back. */
static eplb_status read_type(vllm_stats *self, record *line, eplb_error *error)
{
    eplb_scanner *scanner = &self->reader.scanner;
    eplb_status status = eplb_scan_first_time(scanner, &line->has_type, EPLB_VLLM_TYPE_KEY, error);
    if (status == EPLB_OK) {
        status = eplb_vllm_scan_type(scanner, type, &line->is_stats, error);
    }
    if (status == EPLB_OK && !line->is_stats &&
        (self->reader.step.has_counts || self->reader.step.has_map)) {
        status = eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error,
                                "'%s' or '%s' in a record that is not '%s'", counts_key,
                                self->reader.step.map_key, type);
    }
    return status;
}

static eplb_status read_member(vllm_stats *self, const eplb_reading *reading, const char *key,
                               record *line, eplb_error *error)
{
    eplb_scanner *scanner = &self->reader.scanner;
    if (strcmp(key, EPLB_VLLM_TYPE_KEY) == 0) {
        return read_type(self, line, error);
    }
    if (line->has_type && !line->is_stats) {
        return eplb_scan_skip(scanner, error);
    }
    bool is_version = strcmp(key, "version") == 0;
    if (!is_version && strcmp(key, "num_ranks") != 0) {
        return eplb_slot_step_member(&self->reader.step, scanner, reading, key, error);
    }
    eplb_status status = eplb_scan_first_time(
        scanner, is_version ? &line->has_version : &line->has_ranks, key, error);
    return status == EPLB_OK
               ? eplb_scan_integer(scanner, key, is_version ? INT32_MAX : EPLB_MAX_GPUS,
                                   is_version ? &line->version : &line->ranks, error)
               : status;
}

static eplb_status check_record(vllm_stats *self, const eplb_reading *reading, const record *line,
                                eplb_error *error)
{
    eplb_scanner *scanner = &self->reader.scanner;
    if (!line->has_version || !line->has_ranks) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "no key '%s'",
                              line->has_version ? "num_ranks" : "version");
    }
    if (line->version != EPLB_VLLM_VERSION) {
        return eplb_scan_fail(scanner, EPLB_ERROR_UNSUPPORTED, error,
                              "version %" PRId64 ", only %d is known", line->version,
                              EPLB_VLLM_VERSION);
    }
    eplb_status status = eplb_slot_step_end(&self->reader.step, scanner, reading, error);
    if (status == EPLB_OK && (line->ranks == 0 || self->reader.step.map.slots % line->ranks != 0)) {
        status = eplb_scan_fail(scanner, EPLB_ERROR_DATA, error,
                                "%d slots cannot be spread evenly over %" PRId64 " ranks",
                                self->reader.step.map.slots, line->ranks);
    }
    self->reader.gpus = line->ranks;
    self->any = true;
    return status;
}

static eplb_status read_record(vllm_stats *self, const eplb_reading *reading, record *line,
                               eplb_error *error)
{
    eplb_scanner *scanner = &self->reader.scanner;
    char key[EPLB_KEY_SIZE];
    bool first = true;
    bool more = true;
    eplb_slot_step_begin(&self->reader.step, scanner);
    eplb_status status = eplb_scan_expect(scanner, '{', "'{'", error);
    while (status == EPLB_OK && more) {
        status = eplb_scan_next_key(scanner, &first, key, &more, error);
        if (status == EPLB_OK && more) {
            status = read_member(self, reading, key, line, error);
        }
    }
    if (status == EPLB_OK && !line->has_type) {
        status =
            eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "no key '%s'", EPLB_VLLM_TYPE_KEY);
    }
    return status == EPLB_OK ? eplb_scan_line_end(scanner, error) : status;
}

/* Reads on to the end of the next line of the type. */
static eplb_status next_step(eplb_slot_reader *reader, const eplb_reading *reading,
                             eplb_error *error)
{
    vllm_stats *self = (vllm_stats *)reader;
    record line;
    do {
        int next;
        line = (record){0};
        eplb_status status = eplb_scan_next_line(&self->reader.scanner, &next, error);
        if (status == EPLB_OK && next == EPLB_SCAN_END) {
            self->reader.scanner.step = -1;
            return self->any ? EPLB_END
                             : eplb_scan_fail(&self->reader.scanner, EPLB_ERROR_PARSE, error,
                                              "no record '%s' in the file", type);
        }
        if (status == EPLB_OK) {
            status = read_record(self, reading, &line, error);
        }
        if (status != EPLB_OK) {
            return status;
        }
    } while (!line.is_stats);
    return check_record(self, reading, &line, error);
}

static eplb_status start(vllm_stats *self, eplb_reading *reading, eplb_error *error)
{
    self->reader.step.counts_key = counts_key;
    self->reader.step.map_key = "p2l_map";
    self->reader.next_step = next_step;
    eplb_status status = eplb_slot_reader_start(&self->reader, reading, error);
    self->reader.scanner.one_line = true;
    return status;
}

static eplb_status open_counts(eplb_reading *reading, eplb_error *error)
{
    vllm_stats *self = eplb_alloc_zeroed(&reading->hooks, 1, sizeof(*self));
    reading->state = self;
    return self != NULL ? start(self, reading, error) : eplb_out_of_memory(error);
}

static eplb_status read_placement(eplb_reading *reading, eplb_map *map, eplb_error *error)
{
    vllm_stats self = {.reader = {.step = {.map_only = true}}};
    eplb_status status = start(&self, reading, error);
    if (status == EPLB_OK) {
        status = eplb_slot_reader_map(&self.reader, reading, map, error);
    }
    eplb_slot_reader_clear(&self.reader, &reading->hooks);
    return status;
}

const eplb_format eplb_format_vllm_stats = {
    .name = "vllm_stats",
    .description = "vLLM's load statistics: JSON lines with slot counts and their map",
    .engine = "vLLM",
    .recognised = "JSON line of the record type eplb_load_stats",
    .change = "vllm-project/vllm#41141",
    .flags = EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_READS_PLACEMENT | EPLB_FORMAT_OPEN,
    .probe = probe,
    .counts = {.open = open_counts, .next = eplb_slot_reader_next, .close = eplb_slot_reader_close},
    .placement = {.read = read_placement},
};
