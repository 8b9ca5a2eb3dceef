/* SPDX-License-Identifier: MIT */
/* What the text of a source says: its name, its files, its weight. */
#ifndef EPLB_FORMAT_SOURCE_TEXT_H
#define EPLB_FORMAT_SOURCE_TEXT_H

#include <stdbool.h>
#include <sys/types.h>

#include <eplb/source.h>

/* What is the same file, whatever it is called. Zeros: none that can be read twice. */
typedef struct eplb_file_id {
    dev_t device;
    ino_t number;
} eplb_file_id;

typedef struct eplb_source_text {
    eplb_hooks hooks;
    char *name;
    double weight;
    char **paths;      /* [files], of which [capacity] have room; directories are resolved */
    eplb_file_id *ids; /* [files] */
    int32_t files;
    int32_t capacity;
} eplb_source_text;

/* Reads the text, and the directories that it names. On failure nothing is left to clear. */
eplb_status eplb_source_text_parse(eplb_source_text *self, const eplb_hooks *hooks,
                                   const char *text, eplb_error *error);
void eplb_source_text_clear(eplb_source_text *self);

/* Adds a path, or the files of a directory in numeric order. `text` is for messages. */
eplb_status eplb_source_text_add_path(eplb_source_text *self, const char *text, const char *path,
                                      eplb_error *error);

/* The first path that can be read only once, such as "-"; NULL when there is none. */
const char *eplb_source_text_stream(const eplb_source_text *self);

bool eplb_is_standard_input(const char *path);

#endif
