/* SPDX-License-Identifier: MIT */
#ifndef EPLB_FORMAT_OPTIONS_H
#define EPLB_FORMAT_OPTIONS_H

#include <eplb/format.h>

/* A complete copy of the caller's options (NULL: the defaults), checked. Limits beyond the
 * library's own become the library's. */
eplb_status eplb_read_options_resolve(const eplb_read_options *options, eplb_read_options *resolved,
                                      eplb_error *error);

/* What options.experts of a reading is, for messages about rows of another width. */
const char *eplb_words_for_width(const eplb_read_options *options);

#endif
