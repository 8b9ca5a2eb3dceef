/* SPDX-License-Identifier: MIT */
#include "format/vllm_record.h"

#include <string.h>

eplb_status eplb_vllm_scan_type(eplb_scanner *scanner, const char *type, bool *is_type,
                                eplb_error *error)
{
    char text[EPLB_KEY_SIZE];
    size_t length = 0;
    eplb_status status = eplb_scan_string(scanner, text, sizeof(text), &length, error);
    *is_type = status == EPLB_OK && length == strlen(type) && memcmp(text, type, length) == 0;
    return status;
}

/* Reads one record: *found whether it is what is looked for, *other whether it has another type. */
static eplb_status probe_record(eplb_scanner *scanner, const char *type, const char *key,
                                bool *found, bool *other)
{
    bool first = true;
    bool more = true;
    eplb_status status = eplb_scan_expect(scanner, '{', "", NULL);
    while (status == EPLB_OK && more && !*found) {
        char next[EPLB_KEY_SIZE];
        status = eplb_scan_next_key(scanner, &first, next, &more, NULL);
        if (status != EPLB_OK || !more) {
            break;
        }
        if (strcmp(next, EPLB_VLLM_TYPE_KEY) == 0) {
            status = eplb_vllm_scan_type(scanner, type, found, NULL);
            *other = !*found;
        } else {
            *found = !*other && strcmp(next, key) == 0;
            status = *found ? status : eplb_scan_skip(scanner, NULL);
        }
    }
    return status;
}

bool eplb_vllm_probe(const eplb_probe *probe, const char *type, const char *key)
{
    eplb_input input;
    eplb_scanner scanner;
    bool found = false;
    bool other = true;
    eplb_input_from_memory(&input, NULL, probe->data, probe->size);
    eplb_status status = eplb_scanner_init(&scanner, &input, NULL);
    while (status == EPLB_OK && !found && other) {
        other = false;
        status = probe_record(&scanner, type, key, &found, &other);
    }
    eplb_scanner_close(&scanner);
    return found;
}
