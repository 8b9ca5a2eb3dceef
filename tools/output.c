/* SPDX-License-Identifier: MIT */
#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

int output_finish(int exit_code)
{
    int reason = fflush(stdout) != 0 ? errno : ferror(stdout) ? EIO : 0;
    if (reason != 0) {
        fprintf(stderr, "eplb: standard output: cannot write: %s\n", strerror(reason));
        return EXIT_FAILED;
    }
    return exit_code;
}

int out_of_memory(void)
{
    fputs("eplb: out of memory\n", stderr);
    return EXIT_FAILED;
}

static void *allocate_or_exit(size_t size)
{
    void *memory = malloc(size);
    if (memory == NULL) {
        exit(out_of_memory());
    }
    return memory;
}

cJSON *json_begin(const char *schema)
{
    cJSON_Hooks hooks = {.malloc_fn = allocate_or_exit, .free_fn = free};
    cJSON_InitHooks(&hooks);
    cJSON *document = cJSON_CreateObject();
    cJSON_AddStringToObject(document, "schema", schema);
    return document;
}

int json_finish(cJSON *document, int exit_code)
{
    char *text = cJSON_Print(document);
    cJSON_Delete(document);
    puts(text);
    cJSON_free(text);
    return output_finish(exit_code);
}

void json_add_number(cJSON *object, const char *name, bool exists, double value)
{
    if (exists) {
        cJSON_AddNumberToObject(object, name, value);
    } else {
        cJSON_AddNullToObject(object, name);
    }
}

void json_add_integer(cJSON *object, const char *name, int64_t value)
{
    char digits[32];
    snprintf(digits, sizeof(digits), "%" PRId64, value);
    cJSON_AddRawToObject(object, name, digits);
}

void json_add_known_integer(cJSON *object, const char *name, bool exists, int64_t value)
{
    if (exists) {
        json_add_integer(object, name, value);
    } else {
        cJSON_AddNullToObject(object, name);
    }
}

/* Bytes of the UTF-8 character at `text`, which ends with a NUL; 0 when there is none. */
static size_t utf8_length(const unsigned char *text)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (text[0] < 0x80) {
        return 1;
    }
    size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc0 || text[0] > 0xf7) {
        return 0;
    }
    uint32_t code = text[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (text[i] & 0x3fu);
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < smallest[length] || surrogate || code > 0x10ffff ? 0 : length;
}

void json_add_text(cJSON *object, const char *name, const char *text)
{
    size_t size = strlen(text) + 1;
    char *clean = allocate_or_exit(size);
    memcpy(clean, text, size);
    for (unsigned char *c = (unsigned char *)clean; *c != '\0';) {
        size_t length = utf8_length(c);
        if (length == 0) {
            *c = '?';
            length = 1;
        }
        c += length;
    }
    cJSON_AddStringToObject(object, name, clean);
    free(clean);
}
