/* SPDX-License-Identifier: MIT */
/*
 * Files of torch.save: a zip archive of a pickle, <root>/data.pkl, and of the storages that its
 * tensors are views of, <root>/data/<key>, which lie in the file as they are. Items are read where
 * they lie, through one window.
 */
#ifndef EPLB_FORMAT_TORCH_H
#define EPLB_FORMAT_TORCH_H

#include "format/item.h"
#include "format/pickle.h"
#include "format/zip.h"

#define EPLB_TENSOR_DIMENSIONS 3

/* Room for the name of an entry that is looked for, behind that of the root. */
#define EPLB_TORCH_NAME_ROOM 64

typedef struct eplb_torch {
    eplb_hooks hooks;
    eplb_input *input;
    uint64_t file_size;
    eplb_zip zip;
    char *entry; /* the root's name, and room for that of an entry */
    size_t root_length;
    char *bytes; /* of the pickle */
    eplb_pickle pickle;
    char *window; /* a part of the file */
    uint64_t window_start;
    size_t window_size;
    const char *bad; /* in the window, the item at which the last read stopped */
} eplb_torch;

/* A view of a storage: item [i][j] is at offset + stride[0] * i + stride[1] * j, in items of the
 * storage, which begins at byte `start` of the file; all items are inside it. */
typedef struct eplb_tensor {
    eplb_item_type type;
    int dimensions; /* 1 to EPLB_TENSOR_DIMENSIONS */
    size_t shape[EPLB_TENSOR_DIMENSIONS];
    size_t stride[EPLB_TENSOR_DIMENSIONS];
    size_t offset;
    uint64_t start;
} eplb_tensor;

/* Opens an archive and runs its pickle, of at most `max_bytes`; the input must outlive it. Close it
 * in any case. */
eplb_status eplb_torch_open(eplb_torch *torch, const eplb_hooks *hooks, eplb_input *input,
                            int64_t max_bytes, eplb_error *error);
void eplb_torch_close(eplb_torch *torch);

/* The entry of the root with this name, such as "/data/0", below EPLB_TORCH_NAME_ROOM characters;
 * NULL: there is none. */
const eplb_zip_entry *eplb_torch_entry(eplb_torch *torch, const char *name);

/* The tensor that a value of the pickle is; `what` names it in messages. It has no more items than
 * its storage, and at least one. */
eplb_status eplb_torch_tensor(eplb_torch *torch, const eplb_pickle_value *value, const char *what,
                              eplb_tensor *tensor, eplb_error *error);

/*
 * Reads `count` items, the first at `offset` of the storage and each `stride` behind the one
 * before, as counts. Stops at one that is none: *read is how many are before it, torch->bad is
 * where it is until the next read, and *number says what it is.
 */
eplb_status eplb_torch_read(eplb_torch *torch, const eplb_tensor *tensor, size_t offset,
                            size_t stride, size_t count, double *values, size_t *read,
                            eplb_number_class *number, eplb_error *error);

#endif
