/* SPDX-License-Identifier: MIT */
/*
 * Files of safetensors (https://github.com/huggingface/safetensors): the header's length in 8
 * bytes, the header in JSON, and the data of all tensors. The names of the tensors are not kept, so
 * that hundreds of thousands of them take little memory: the format makes numbers of them.
 */
#ifndef EPLB_FORMAT_SAFETENSORS_H
#define EPLB_FORMAT_SAFETENSORS_H

#include "format/format.h"
#include "format/item.h"
#include "format/scanner.h"

/* Room for the name of a tensor. */
#define EPLB_TENSOR_NAME_SIZE 1024

typedef struct eplb_tensor {
    int64_t number; /* the format's, as is the layer */
    uint64_t begin; /* of its items in the data */
    uint32_t size;  /* of all of them in bytes */
    int32_t layer;
} eplb_tensor;

/* What the header says of a tensor. */
typedef struct eplb_tensor_info {
    const char *name;
    eplb_item_type type;
    size_t dimensions;
    uint64_t shape[2]; /* the first ones */
    uint64_t begin;    /* its part of the data */
    uint64_t end;
} eplb_tensor_info;

typedef struct eplb_safetensors {
    eplb_hooks hooks;
    eplb_input *input;
    uint64_t data_offset;        /* in the file */
    uint64_t data_size;          /* all of it belongs to one tensor each */
    char version[EPLB_KEY_SIZE]; /* in the metadata; "": there is none */
    eplb_tensor *tensors;        /* [count], by number and layer */
    size_t count;
    size_t capacity;
} eplb_safetensors;

/* Sets an error of a tensor that is being read, with its place and name. Returns `status`. */
eplb_status eplb_tensor_fail(const eplb_scanner *scanner, const eplb_tensor_info *info,
                             eplb_status status, eplb_error *error, const char *format, ...)
    EPLB_PRINTF(5, 6);

/* Checks what is read of a tensor and sets its number and layer. `info` and the name are valid
 * during the call. */
typedef eplb_status (*eplb_tensor_visit)(void *context, const eplb_scanner *scanner,
                                         const eplb_tensor_info *info, eplb_tensor *tensor,
                                         eplb_error *error);

/* Reads the header from the beginning of the input, which must outlive it. EPLB_ERROR_UNSUPPORTED
 * for an input that is a pipe or compressed. After a failure, too, it is to be closed. */
eplb_status eplb_safetensors_open(eplb_safetensors *self, const eplb_hooks *hooks,
                                  eplb_input *input, eplb_tensor_visit visit, void *context,
                                  eplb_error *error);
void eplb_safetensors_close(eplb_safetensors *self);

/* Reads `row->length` items at an offset in the data as counts. Step and layer of the row are for
 * errors; a step of -1 is none. */
eplb_status eplb_safetensors_row(eplb_safetensors *self, const eplb_item_type *type,
                                 uint64_t offset, const eplb_counts_row *row, double *counts,
                                 eplb_error *error);

/* Reads what the header says of one tensor, all but its name. `data_size` is how much there is. */
eplb_status eplb_safetensors_scan_info(eplb_scanner *scanner, uint64_t data_size,
                                       eplb_tensor_info *info, eplb_error *error);

/* How such a file begins, as far as a probe sees. */
typedef struct eplb_safetensors_start {
    char name[EPLB_KEY_SIZE]; /* of the first tensor; "" when it is not seen, or long */
    bool has_version;         /* its metadata has a version */
} eplb_safetensors_start;

/* False for other content. */
bool eplb_safetensors_probe(const eplb_probe *probe, eplb_safetensors_start *start);

#endif
