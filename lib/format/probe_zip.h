/* SPDX-License-Identifier: MIT */
#ifndef EPLB_FORMAT_PROBE_ZIP_H
#define EPLB_FORMAT_PROBE_ZIP_H

#include "format/format.h"

/* Whether the content is a zip archive whose first entry has a name that ends in `suffix`, and has
 * more before it. */
bool eplb_probe_zip_entry(const eplb_probe *probe, const char *suffix);

/* Whether a text ends in `suffix` and has more before it. */
bool eplb_has_suffix(const char *text, size_t length, const char *suffix);

#endif
