/* SPDX-License-Identifier: MIT */
/*
 * A dump of vLLM's load balancer, of a branch that is not merged: a JSON object with `metadata` and
 * `snapshots`, each with the slot counts of its step and the map in force. One snapshot is in
 * memory at a time. Their windows overlap, so only `latest_expert_load` counts. The map of the last
 * snapshot is the placement.
 */
#include "format/probe_json.h"
#include "format/slot_reader.h"
#include "format/vllm_metadata.h"

static const char metadata_key[] = "metadata";
static const char snapshots_key[] = "snapshots";

typedef struct vllm_dump {
    eplb_slot_reader reader;
    eplb_vllm_metadata metadata;
    bool has_metadata;
    bool has_snapshots;
    bool any; /* a snapshot was read */
} vllm_dump;

static bool probe(const eplb_probe *probe)
{
    return eplb_probe_json_key(probe, snapshots_key);
}

static eplb_status read_metadata(vllm_dump *self, const eplb_reading *reading, eplb_error *error)
{
    eplb_scanner *scanner = &self->reader.scanner;
    eplb_status status = eplb_scan_first_time(scanner, &self->has_metadata, metadata_key, error);
    if (status == EPLB_OK) {
        status = eplb_vllm_metadata_read(&self->metadata, scanner, error);
    }
    self->reader.gpus = self->metadata.gpus;
    /* Before a map does, they say how many experts there are: one may have no replica. */
    return status == EPLB_OK && !self->any
               ? eplb_vllm_metadata_experts(&self->metadata, scanner, reading,
                                            &self->reader.step.experts, error)
               : status;
}

/* Reads members of the document up to the beginning of the snapshots, or to its end. */
static eplb_status read_members(vllm_dump *self, const eplb_reading *reading, bool *first,
                                eplb_error *error)
{
    eplb_scanner *scanner = &self->reader.scanner;
    char key[EPLB_KEY_SIZE] = "";
    bool more = true;
    eplb_status status = EPLB_OK;
    while (status == EPLB_OK && more) {
        status = eplb_scan_next_key(scanner, first, key, &more, error);
        if (status != EPLB_OK || !more) {
            break;
        }
        if (strcmp(key, snapshots_key) == 0) {
            status = eplb_scan_first_time(scanner, &self->has_snapshots, key, error);
            return status == EPLB_OK
                       ? eplb_scan_expect(scanner, '[', "'[': a list of snapshots", error)
                       : status;
        }
        status = strcmp(key, metadata_key) == 0 ? read_metadata(self, reading, error)
                                                : eplb_scan_skip(scanner, error);
    }
    if (status == EPLB_OK && !self->has_snapshots) {
        status = eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "no key '%s'", snapshots_key);
    }
    return status;
}

/* Behind the list of snapshots. */
static eplb_status finish(vllm_dump *self, const eplb_reading *reading, eplb_error *error)
{
    eplb_scanner *scanner = &self->reader.scanner;
    bool first = false;
    scanner->step = -1;
    if (!self->any) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "no snapshots in the file");
    }
    eplb_status status = read_members(self, reading, &first, error);
    if (status == EPLB_OK) {
        status = eplb_vllm_metadata_check(&self->metadata, scanner, &self->reader.step, error);
    }
    if (status == EPLB_OK) {
        status = eplb_scan_finish(scanner, error);
    }
    return status == EPLB_OK ? EPLB_END : status;
}

/* Whether a snapshot follows in the list, whose first one has no comma before it. */
static eplb_status find_snapshot(vllm_dump *self, bool *follows, eplb_error *error)
{
    eplb_scanner *scanner = &self->reader.scanner;
    if (self->any) {
        return eplb_scan_either(scanner, ',', ']', follows, error);
    }
    int next;
    eplb_status status = eplb_scan_peek(scanner, &next, error);
    *follows = next != ']';
    return status;
}

static eplb_status next_step(eplb_slot_reader *reader, const eplb_reading *reading,
                             eplb_error *error)
{
    vllm_dump *self = (vllm_dump *)reader;
    eplb_scanner *scanner = &self->reader.scanner;
    char key[EPLB_KEY_SIZE];
    bool first = true;
    bool more = false;
    eplb_slot_step_begin(&self->reader.step, scanner);
    eplb_status status = find_snapshot(self, &more, error);
    if (status == EPLB_OK && !more) {
        return finish(self, reading, error);
    }
    if (status == EPLB_OK) {
        status = eplb_scan_expect(scanner, '{', "'{': a snapshot", error);
    }
    while (status == EPLB_OK && more) {
        status = eplb_scan_next_key(scanner, &first, key, &more, error);
        if (status == EPLB_OK && more) {
            status = eplb_slot_step_member(&self->reader.step, scanner, reading, key, error);
        }
    }
    if (status == EPLB_OK) {
        status = eplb_slot_step_end(&self->reader.step, scanner, reading, error);
    }
    self->any = true;
    return status == EPLB_OK
               ? eplb_vllm_metadata_check(&self->metadata, scanner, &self->reader.step, error)
               : status;
}

static eplb_status start(vllm_dump *self, eplb_reading *reading, eplb_error *error)
{
    bool first = true;
    self->reader.step.counts_key = "latest_expert_load";
    self->reader.step.map_key = "physical_to_logical_map";
    self->reader.next_step = next_step;
    eplb_status status = eplb_slot_reader_start(&self->reader, reading, error);
    if (status == EPLB_OK) {
        status = eplb_scan_expect(&self->reader.scanner, '{', "'{'", error);
    }
    return status == EPLB_OK ? read_members(self, reading, &first, error) : status;
}

static eplb_status open_counts(eplb_reading *reading, eplb_error *error)
{
    vllm_dump *self = eplb_alloc_zeroed(&reading->hooks, 1, sizeof(*self));
    reading->state = self;
    return self != NULL ? start(self, reading, error) : eplb_out_of_memory(error);
}

static eplb_status read_placement(eplb_reading *reading, eplb_map *map, eplb_error *error)
{
    vllm_dump self = {.reader = {.step = {.map_only = true}}};
    eplb_status status = start(&self, reading, error);
    if (status == EPLB_OK) {
        status = eplb_slot_reader_map(&self.reader, reading, map, error);
    }
    eplb_slot_reader_clear(&self.reader, &reading->hooks);
    return status;
}

const eplb_format eplb_format_vllm_dump = {
    .name = "vllm_dump",
    .description = "dump of vLLM's load balancer: snapshots of slot counts and their map",
    .engine = "vLLM",
    .recognised = "JSON with the key snapshots",
    .flags = EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_READS_PLACEMENT | EPLB_FORMAT_OPEN,
    .probe = probe,
    .counts = {.open = open_counts, .next = eplb_slot_reader_next, .close = eplb_slot_reader_close},
    .placement = {.read = read_placement},
};
