/* SPDX-License-Identifier: MIT */
/* JSON documents that are maps, as a tree of cJSON. Bulk counts are read by the scanner. */
#ifndef EPLB_FORMAT_JSON_TREE_H
#define EPLB_FORMAT_JSON_TREE_H

#include <cjson/cJSON.h>

#include "format/format.h"

/*
 * Reads the whole file. The scanner checks it first: it says the line and column of what is wrong,
 * refuses what cJSON would accept or misread (leading zeros, trailing garbage, U+0000 that would
 * end a key early, numbers of more than 63 characters), and bounds the nesting. What cJSON itself
 * then fails at is memory. The tree is the caller's, to be given to cJSON_Delete.
 */
eplb_status eplb_json_read(eplb_reading *reading, cJSON **tree, eplb_error *error);

/* The member of an object with exactly this key; `where` names the object in errors. A missing key
 * and a second one are EPLB_ERROR_PARSE. */
eplb_status eplb_json_member(const cJSON *object, const char *key, const char *name,
                             const char *where, const cJSON **member, eplb_error *error);

/* Such a member that is an integer in smallest..largest (int32_t), or a list. */
eplb_status eplb_json_integer_member(const cJSON *object, const char *key, const char *name,
                                     const char *where, int32_t *value, eplb_error *error);
eplb_status eplb_json_list_member(const cJSON *object, const char *key, const char *name,
                                  const char *where, const cJSON **list, eplb_error *error);

/* Number of items, and of members of an object. */
size_t eplb_json_length(const cJSON *list);

/* Reads a list of exactly `length` integers of 32 bits, such as a row of a map. */
eplb_status eplb_json_integers(const cJSON *list, const char *name, const char *where,
                               int32_t length, int32_t *values, eplb_error *error);

/* The same where the integers are not of slots: `items` is what errors call them, in the plural
 * with an "s" at its end. */
eplb_status eplb_json_integers_of(const cJSON *list, const char *items, const char *name,
                                  const char *where, int32_t length, int32_t *values,
                                  eplb_error *error);

/* Reads a list of rows, [layers][slots], into the map. */
eplb_status eplb_json_rows(const cJSON *list, const eplb_read_options *options, eplb_map *map,
                           eplb_error *error);

/* Appends a row of a list of rows, one a line: "[0,1]", or ",\n[0,1]" behind another one. */
void eplb_json_add_row(eplb_text *text, bool first, const int32_t *row, int32_t slots);

#endif
