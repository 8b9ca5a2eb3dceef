/* SPDX-License-Identifier: MIT */
#include "format/json_tree.h"

#include <stdio.h>

#include "base/memory.h"
#include "format/quote.h"
#include "format/scanner.h"

static eplb_status check_document(const eplb_reading *reading, const char *text, size_t length,
                                  eplb_error *error)
{
    eplb_input input;
    eplb_scanner scanner;
    eplb_input_from_memory(&input, reading->input.name, text, length);
    eplb_status status = eplb_scanner_init(&scanner, &input, error);
    scanner.for_cjson = true;
    if (status == EPLB_OK) {
        status = eplb_scan_skip(&scanner, error);
    }
    if (status == EPLB_OK) {
        status = eplb_scan_finish(&scanner, error);
    }
    eplb_scanner_close(&scanner);
    return status;
}

eplb_status eplb_json_read(eplb_reading *reading, cJSON **tree, eplb_error *error)
{
    char *text;
    size_t length;
    *tree = NULL;
    eplb_status status = eplb_reading_read_all(reading, &text, &length, error);
    if (status != EPLB_OK) {
        return status;
    }
    status = check_document(reading, text, length, error);
    if (status == EPLB_OK) {
        const char *end = NULL;
        *tree = cJSON_ParseWithLengthOpts(text, length + 1, &end, 1);
        status = *tree != NULL ? EPLB_OK : eplb_out_of_memory(error);
    }
    eplb_free(&reading->hooks, text);
    return status;
}

eplb_status eplb_json_member(const cJSON *object, const char *key, const char *name,
                             const char *where, const cJSON **member, eplb_error *error)
{
    *member = NULL;
    if (!cJSON_IsObject(object)) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %s is not an object", name, where);
    }
    for (const cJSON *child = object->child; child != NULL; child = child->next) {
        if (strcmp(child->string, key) != 0) {
            continue;
        }
        if (*member != NULL) {
            return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %s has a second key '%s'", name,
                                  where, key);
        }
        *member = child;
    }
    if (*member == NULL) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %s has no key '%s'", name, where, key);
    }
    return EPLB_OK;
}

static bool is_integer(const cJSON *item)
{
    return cJSON_IsNumber(item) && item->valuedouble >= INT32_MIN &&
           item->valuedouble <= INT32_MAX &&
           item->valuedouble == (double)(int32_t)item->valuedouble;
}

/* A value as messages show it. */
static eplb_quote show(const cJSON *item)
{
    eplb_quote shown = {"true or false"};
    if (cJSON_IsNumber(item)) {
        snprintf(shown.text, sizeof(shown.text), "%.17g", item->valuedouble);
    } else if (cJSON_IsString(item)) {
        strcpy(shown.text, "a string");
    } else if (cJSON_IsArray(item)) {
        strcpy(shown.text, "a list");
    } else if (cJSON_IsObject(item)) {
        strcpy(shown.text, "an object");
    } else if (cJSON_IsNull(item)) {
        strcpy(shown.text, "null");
    }
    return shown;
}

eplb_status eplb_json_integer_member(const cJSON *object, const char *key, const char *name,
                                     const char *where, int32_t *value, eplb_error *error)
{
    const cJSON *member;
    eplb_status status = eplb_json_member(object, key, name, where, &member, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (!is_integer(member)) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: %s: '%s' is not an integer of 32 bits, but %s", name, where, key,
                              show(member).text);
    }
    *value = (int32_t)member->valuedouble;
    return EPLB_OK;
}

eplb_status eplb_json_list_member(const cJSON *object, const char *key, const char *name,
                                  const char *where, const cJSON **list, eplb_error *error)
{
    eplb_status status = eplb_json_member(object, key, name, where, list, error);
    if (status == EPLB_OK && !cJSON_IsArray(*list)) {
        status =
            eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %s: '%s' is not a list", name, where, key);
    }
    return status;
}

size_t eplb_json_length(const cJSON *list)
{
    size_t length = 0;
    for (const cJSON *item = list->child; item != NULL; item = item->next) {
        length++;
    }
    return length;
}

eplb_status eplb_json_integers_of(const cJSON *list, const char *items, const char *name,
                                  const char *where, int32_t length, int32_t *values,
                                  eplb_error *error)
{
    if (!cJSON_IsArray(list)) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %s is not a list", name, where);
    }
    size_t found = eplb_json_length(list);
    if (found != (size_t)length) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: %s: %zu %s, expected %d", name, where,
                              found, items, length);
    }
    int32_t index = 0;
    for (const cJSON *item = list->child; item != NULL; item = item->next) {
        if (!is_integer(item)) {
            return eplb_error_set(error, EPLB_ERROR_PARSE,
                                  "%s: %s: %.*s %d is not an integer of 32 bits, but %s", name,
                                  where, (int)strlen(items) - 1, items, index, show(item).text);
        }
        values[index++] = (int32_t)item->valuedouble;
    }
    return EPLB_OK;
}

eplb_status eplb_json_integers(const cJSON *list, const char *name, const char *where,
                               int32_t length, int32_t *values, eplb_error *error)
{
    return eplb_json_integers_of(list, "slots", name, where, length, values, error);
}

/* The length of the first row becomes memory for each of them only when all are as long. */
static eplb_status check_rows(const cJSON *list, const char *name, size_t *slots, eplb_error *error)
{
    int32_t layer = 0;
    *slots = 0;
    for (const cJSON *row = list->child; row != NULL; row = row->next) {
        if (!cJSON_IsArray(row)) {
            return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: layer %d is not a list", name,
                                  layer);
        }
        size_t length = eplb_json_length(row);
        *slots = row == list->child ? length : *slots;
        if (length != *slots) {
            return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: layer %d: %zu slots, expected %zu",
                                  name, layer, length, *slots);
        }
        layer++;
    }
    return EPLB_OK;
}

eplb_status eplb_json_rows(const cJSON *list, const eplb_read_options *options, eplb_map *map,
                           eplb_error *error)
{
    size_t slots;
    eplb_status status = check_rows(list, map->name, &slots, error);
    if (status == EPLB_OK) {
        status = eplb_map_shape(map, options, eplb_json_length(list), slots, error);
    }
    int32_t layer = 0;
    for (const cJSON *row = list->child; row != NULL && status == EPLB_OK; row = row->next) {
        char where[32];
        snprintf(where, sizeof(where), "layer %d", layer);
        status =
            eplb_json_integers(row, map->name, where, map->slots, eplb_map_row(map, layer), error);
        layer++;
    }
    return status;
}

void eplb_json_add_row(eplb_text *text, bool first, const int32_t *row, int32_t slots)
{
    eplb_text_add(text, first ? "[" : ",\n[");
    eplb_text_add_list(text, row, slots, ",");
    eplb_text_add(text, "]");
}
