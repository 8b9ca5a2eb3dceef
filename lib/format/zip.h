/* SPDX-License-Identifier: MIT */
/* The entries of a zip archive, such as .npz and what torch.save writes. */
#ifndef EPLB_FORMAT_ZIP_H
#define EPLB_FORMAT_ZIP_H

#include "format/input.h"

#define EPLB_ZIP_MAGIC "PK\x03\x04"
#define EPLB_ZIP_MAGIC_SIZE ((size_t)4)

/* What formats of counts in such archives can do. */
#ifdef EPLB_HAVE_ZIP
#define EPLB_ZIP_READS_COUNTS EPLB_FORMAT_READS_COUNTS
#else
#define EPLB_ZIP_READS_COUNTS 0
#endif

typedef struct eplb_zip_entry {
    char *name;
    uint64_t size;   /* of its content */
    uint64_t packed; /* bytes in the archive */
    uint32_t crc;    /* of its content */
    bool is_stored;  /* neither compressed nor encrypted: it lies in the file as it is */
    bool is_encrypted;
    uint64_t place; /* where minizip finds it: in the directory, and its number there */
    uint64_t number;
} eplb_zip_entry;

typedef struct eplb_zip {
    eplb_hooks hooks;
    eplb_input *input;
    struct eplb_zip_file *file; /* what minizip reads from */
    void *archive;              /* minizip's */
    eplb_zip_entry *entries;    /* [count], by name; no name twice */
    size_t count;
    size_t capacity;
} eplb_zip;

/* Reads the directory of an archive; the input must outlive it. EPLB_ERROR_UNSUPPORTED for an input
 * that is a pipe or compressed, or when this build lacks minizip. On failure nothing is left to
 * close. */
eplb_status eplb_zip_open(eplb_zip *zip, const eplb_hooks *hooks, eplb_input *input,
                          eplb_error *error);
void eplb_zip_close(eplb_zip *zip);

/* NULL: there is none. */
const eplb_zip_entry *eplb_zip_find(const eplb_zip *zip, const char *name);

/* Where in the file the content of a stored entry begins; all of it is inside the file. */
eplb_status eplb_zip_locate(eplb_zip *zip, const eplb_zip_entry *entry, uint64_t *offset,
                            eplb_error *error);

/* The content of an entry, stored or deflated, with its checksum. The stream must be closed
 * before the archive. It can be read on another thread, hooks are called for its first MiB only. */
eplb_status eplb_zip_read(eplb_zip *zip, const eplb_zip_entry *entry, eplb_stream **stream,
                          eplb_error *error);

#endif
