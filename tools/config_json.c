/* SPDX-License-Identifier: MIT */
#include "config_json.h"

#include <string.h>

/* Real ones have a hundred; what follows looks at all pairs. */
#define MOST_KEYS 1024

/* cJSON takes the first of two keys, other readers the last: neither is what was meant. */
static const char *find_twin(const cJSON *object)
{
    for (const cJSON *member = object->child; member != NULL; member = member->next) {
        if (cJSON_GetObjectItemCaseSensitive(object, member->string) != member) {
            return member->string;
        }
    }
    return NULL;
}

static eplb_status check_keys(const cJSON *object, const char *path, eplb_error *error)
{
    if (cJSON_GetArraySize(object) > MOST_KEYS) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT, "%s: more than %d keys are no config", path,
                              MOST_KEYS);
    }
    const char *twin = find_twin(object);
    return twin == NULL
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_PARSE, "%s: '%s' is there twice", path, twin);
}

eplb_status config_json_parse(config_json *self, const char *path, const char *text, size_t length,
                              eplb_error *error)
{
    const char *end = NULL;
    self->document = cJSON_ParseWithLengthOpts(text, length + 1, &end, 1);
    self->text = self->document;
    if (self->document == NULL) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: not a JSON document: byte %lld", path,
                              end != NULL ? (long long)(end - text) : 0LL);
    }
    if (!cJSON_IsObject(self->document)) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: not an object", path);
    }
    const cJSON *nested = cJSON_GetObjectItemCaseSensitive(self->document, "text_config");
    self->text = cJSON_IsObject(nested) ? nested : self->document;
    eplb_status status = check_keys(self->document, path, error);
    return status == EPLB_OK ? check_keys(self->text, path, error) : status;
}

void config_json_release(config_json *self)
{
    cJSON_Delete(self->document);
    *self = (config_json){0};
}

const cJSON *config_find(const config_json *self, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(self->text, key);
    if (item == NULL || cJSON_IsNull(item)) {
        item = cJSON_GetObjectItemCaseSensitive(self->document, key);
    }
    return item != NULL && !cJSON_IsNull(item) ? item : NULL;
}

const char *config_first_of(const config_json *self, const char *const *keys)
{
    for (; *keys != NULL; keys++) {
        if (config_find(self, *keys) != NULL) {
            return *keys;
        }
    }
    return NULL;
}

bool config_is_count(const cJSON *item, int32_t low, int32_t *value)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= (double)low) ||
        item->valuedouble > (double)INT32_MAX ||
        item->valuedouble != (double)(int32_t)item->valuedouble) {
        return false;
    }
    *value = (int32_t)item->valuedouble;
    return true;
}
