/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "format/safetensors.h"

/* No header has more bytes; the length of other content is a number at random. */
#define MOST_BYTES ((uint64_t)1 << 40)

#define LENGTH_SIZE ((size_t)8)

static eplb_status find_version(eplb_scanner *scanner, bool *found)
{
    char key[EPLB_KEY_SIZE];
    bool first = true;
    bool more = true;
    eplb_status status = eplb_scan_expect(scanner, '{', "", NULL);
    while (status == EPLB_OK && more) {
        status = eplb_scan_next_key(scanner, &first, key, &more, NULL);
        if (status == EPLB_OK && more) {
            *found = *found || strcmp(key, "version") == 0;
            status = eplb_scan_skip(scanner, NULL);
        }
    }
    return status;
}

/* Looks at the members until a tensor and metadata were seen, or no more can be. */
static void look(eplb_scanner *scanner, eplb_safetensors_start *start)
{
    char key[EPLB_KEY_SIZE];
    bool first = true;
    bool more = true;
    bool has_metadata = false;
    bool has_tensor = false;
    eplb_status status = eplb_scan_expect(scanner, '{', "", NULL);
    while (status == EPLB_OK && !(has_metadata && has_tensor)) {
        status = eplb_scan_next_key(scanner, &first, key, &more, NULL);
        if (status != EPLB_OK || !more) {
            break;
        }
        if (strcmp(key, "__metadata__") == 0) {
            has_metadata = true;
            status = find_version(scanner, &start->has_version);
            continue;
        }
        if (!has_tensor) {
            strcpy(start->name, key);
        }
        has_tensor = true;
        status = eplb_scan_skip(scanner, NULL);
    }
}

bool eplb_safetensors_probe(const eplb_probe *probe, eplb_safetensors_start *start)
{
    *start = (eplb_safetensors_start){.has_version = false};
    if (probe->size <= LENGTH_SIZE || probe->data[LENGTH_SIZE] != '{' ||
        eplb_item_bits(probe->data, LENGTH_SIZE, false) > MOST_BYTES) {
        return false;
    }
    eplb_input input;
    eplb_scanner scanner;
    eplb_input_from_memory(&input, NULL, probe->data + LENGTH_SIZE, probe->size - LENGTH_SIZE);
    if (eplb_scanner_init(&scanner, &input, NULL) == EPLB_OK) {
        look(&scanner, start);
    }
    eplb_scanner_close(&scanner);
    return true;
}
