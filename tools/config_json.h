/* SPDX-License-Identifier: MIT */
/* Look-ups in a config.json. */
#ifndef EPLB_TOOLS_CONFIG_JSON_H
#define EPLB_TOOLS_CONFIG_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include <eplb/status.h>

/* The document, and the object in it that describes the language model, where there is one: models
 * of text and images nest it as text_config. */
typedef struct config_json {
    cJSON *document;
    const cJSON *text; /* the document itself when nothing is nested */
} config_json;

/* Reads exactly one JSON document, an object; `path` is for messages. To be given to
 * config_json_release. */
eplb_status config_json_parse(config_json *self, const char *path, const char *text, size_t length,
                              eplb_error *error);
void config_json_release(config_json *self);

/* The value of a key in the nested object, else in the document; NULL: it is in neither, or null.
 */
const cJSON *config_find(const config_json *self, const char *key);

/* Which of the keys, a list that ends with NULL, is there first; NULL: none. */
const char *config_first_of(const config_json *self, const char *const *keys);

/* Whether an item is a whole number in low..2^31-1, and its value. */
bool config_is_count(const cJSON *item, int32_t low, int32_t *value);

#endif
