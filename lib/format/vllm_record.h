/* SPDX-License-Identifier: MIT */
/* The JSON records of vllm-project/vllm#41141, which is not merged: each has its type in
 * `record_type` and a `version`. */
#ifndef EPLB_FORMAT_VLLM_RECORD_H
#define EPLB_FORMAT_VLLM_RECORD_H

#include "format/format.h"
#include "format/scanner.h"

#define EPLB_VLLM_TYPE_KEY "record_type"

/* Of the records with an initial mapping, which a file of statistics may begin with. */
#define EPLB_VLLM_MAPPING_TYPE "eplb_initial_mapping"
#define EPLB_VLLM_MAPPING_KEY "initial_global_assignments"

/* The only version that is known. */
#define EPLB_VLLM_VERSION 1

/* Whether one of the records that the content begins with is of a type, or, as long as its type is
 * not yet seen, has a key of such records. */
bool eplb_vllm_probe(const eplb_probe *probe, const char *type, const char *key);

/* Reads the value of `record_type` and says whether it is `type`. */
eplb_status eplb_vllm_scan_type(eplb_scanner *scanner, const char *type, bool *is_type,
                                eplb_error *error);

#endif
