/* SPDX-License-Identifier: MIT */
#include "format/probe_zip.h"

#include <string.h>

#include "format/zip.h"

/* An entry's header, as it lies before the entry. */
#define HEADER_SIZE ((size_t)30)
#define NAME_LENGTH 26

bool eplb_has_suffix(const char *text, size_t length, const char *suffix)
{
    size_t size = strlen(suffix);
    return length > size && memcmp(text + length - size, suffix, size) == 0;
}

bool eplb_probe_zip_entry(const eplb_probe *probe, const char *suffix)
{
    const unsigned char *header = (const unsigned char *)probe->data;
    if (probe->size < HEADER_SIZE || memcmp(header, EPLB_ZIP_MAGIC, EPLB_ZIP_MAGIC_SIZE) != 0) {
        return false;
    }
    size_t length = header[NAME_LENGTH] + ((size_t)header[NAME_LENGTH + 1] << 8);
    return length <= probe->size - HEADER_SIZE &&
           eplb_has_suffix(probe->data + HEADER_SIZE, length, suffix);
}
