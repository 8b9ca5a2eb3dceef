/* SPDX-License-Identifier: MIT */
#ifndef EPLB_FORMAT_PROBE_JSON_H
#define EPLB_FORMAT_PROBE_JSON_H

#include "format/format.h"

/* Whether the content begins with a JSON object that has the key at its top, as far as the object
 * is within the beginning of the file and well-formed. */
bool eplb_probe_json_key(const eplb_probe *probe, const char *key);

/* Whether the content begins with a JSON array of numbers, or of arrays. */
bool eplb_probe_json_list(const eplb_probe *probe);

/* Whether it begins with a JSON array of arrays. */
bool eplb_probe_json_rows(const eplb_probe *probe);

#endif
