/* SPDX-License-Identifier: MIT */
/* Counts or a placement: what the options leave, else what the content is. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "convert.h"
#include "formats.h"
#include "message.h"

/* By the number of --what. */
static const uint32_t reads[] = {EPLB_FORMAT_READS_COUNTS, EPLB_FORMAT_READS_PLACEMENT};
static const uint32_t writes[] = {EPLB_FORMAT_WRITES_COUNTS, EPLB_FORMAT_WRITES_PLACEMENT};
#define KINDS 2

static int find_formats(conversion *self)
{
    const convert_values *values = self->values;
    const char *name = convert_command.name;
    /* What this build only writes is for the reader to explain. */
    uint32_t readable = reads[WHAT_COUNTS] | reads[WHAT_PLACEMENT] | writes[WHAT_PLACEMENT];
    int exit_code = find_format(name, "from", values->from, readable, &self->from);
    return exit_code == EXIT_DONE
               ? find_format(name, "to", values->to, writes[WHAT_COUNTS] | writes[WHAT_PLACEMENT],
                             &self->to)
               : exit_code;
}

static bool has(const eplb_format *format, uint32_t ability)
{
    return format == NULL || (eplb_format_flags(format) & ability) != 0;
}

static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Whether options and the kind of file leave it open that it is this. */
static bool may_be(const conversion *self, int32_t kind)
{
    const convert_values *values = self->values;
    bool is_source = values->files.count > 1 || is_directory(self->path) ||
                     values->counting.counted_under != NULL || values->counting.array != NULL;
    bool is_map = convert_placement_option_given(values) != NULL;
    uint32_t readable = reads[kind] | (kind == WHAT_PLACEMENT ? writes[kind] : 0);
    return (values->what == NOT_GIVEN || values->what == kind) &&
           !(kind == WHAT_PLACEMENT && is_source) && !(kind == WHAT_COUNTS && is_map) &&
           has(self->from, readable) && has(self->to, writes[kind]);
}

/* Appends " name" of each format that the content fits. */
static eplb_status list_fitting(const conversion *self, int32_t kind, char *names, size_t size,
                                eplb_error *error)
{
    names[0] = '\0';
    eplb_status status = EPLB_OK;
    for (size_t i = 0; eplb_format_at(i) != NULL && status == EPLB_OK; i++) {
        const eplb_format *format = eplb_format_at(i);
        int32_t fits = 0;
        if (self->from == NULL || self->from == format) {
            status = eplb_format_fits(format, &self->hooks, self->path, reads[kind], &fits, error);
        }
        size_t used = strlen(names);
        if (fits != 0 && used + strlen(eplb_format_name(format)) + 2 < size) {
            snprintf(names + used, size - used, " %s", eplb_format_name(format));
        }
    }
    return status;
}

static eplb_status look(conversion *self, eplb_error *error)
{
    char names[KINDS][120];
    eplb_status status = EPLB_OK;
    for (int32_t kind = 0; kind < KINDS && status == EPLB_OK; kind++) {
        status = list_fitting(self, kind, names[kind], sizeof(names[kind]), error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    const char *shown = self->values->files.items[0];
    bool fits[KINDS] = {names[0][0] != '\0', names[1][0] != '\0'};
    if (fits[WHAT_COUNTS] && fits[WHAT_PLACEMENT]) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%.200s: the content fits counts (%s) and a placement (%s): say "
                              "which with --what or --from",
                              shown, names[WHAT_COUNTS] + 1, names[WHAT_PLACEMENT] + 1);
    }
    if (!fits[WHAT_COUNTS] && !fits[WHAT_PLACEMENT]) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%.200s: the content is of no known format of counts or placements; "
                              "eplb convert --list shows them",
                              shown);
    }
    self->is_placement = fits[WHAT_PLACEMENT];
    return EPLB_OK;
}

/* The format that a name's ending stands for; NULL: none. */
static const eplb_format *format_of_ending(const char *path, bool is_placement)
{
    static const struct {
        const char *ending;
        const char *formats[KINDS];
    } endings[] = {{".csv", {"csv", NULL}},     {".jsonl", {"jsonl", NULL}},
                   {".npy", {"npy", "omni"}},   {".json", {"sglang", "sglang"}},
                   {".yaml", {NULL, "trtllm"}}, {".yml", {NULL, "trtllm"}}};
    const char *ending = strrchr(path, '.');
    for (size_t i = 0; ending != NULL && i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (strcmp(ending, endings[i].ending) == 0) {
            return eplb_format_find(endings[i].formats[is_placement ? 1 : 0]);
        }
    }
    return NULL;
}

static void choose_target(conversion *self)
{
    if (self->to == NULL) {
        self->to = format_of_ending(self->values->out, self->is_placement);
    }
    if (self->to == NULL) {
        self->to = eplb_format_find(self->is_placement ? "sglang" : "jsonl");
    }
}

int convert_find_kind(conversion *self)
{
    int exit_code = find_formats(self);
    if (exit_code != EXIT_DONE) {
        return exit_code;
    }
    bool counts = may_be(self, WHAT_COUNTS);
    bool placement = may_be(self, WHAT_PLACEMENT);
    if (!counts && !placement) {
        return usage_error(convert_command.name,
                           "the options leave neither counts nor a placement to convert: --from "
                           "and --to say what both are of, several files, a directory, "
                           "--counted-under and --array are for counts, and --draft-layers and "
                           "--without-draft-layers for placements");
    }
    self->is_placement = placement;
    eplb_error error;
    if (counts && placement && look(self, &error) != EPLB_OK) {
        return fail(&error);
    }
    choose_target(self);
    return EXIT_DONE;
}
