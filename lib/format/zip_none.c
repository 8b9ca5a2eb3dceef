/* SPDX-License-Identifier: MIT */
/* Zip archives in a build without minizip. */
#include "format/zip.h"

eplb_status eplb_zip_open(eplb_zip *zip, const eplb_hooks *hooks, eplb_input *input,
                          eplb_error *error)
{
    *zip = (eplb_zip){.hooks = *hooks, .input = input};
    return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                          "%s: a zip archive, and this build is without minizip", input->name);
}

void eplb_zip_close(eplb_zip *zip)
{
    (void)zip;
}

const eplb_zip_entry *eplb_zip_find(const eplb_zip *zip, const char *name)
{
    (void)zip;
    (void)name;
    return NULL;
}

eplb_status eplb_zip_locate(eplb_zip *zip, const eplb_zip_entry *entry, uint64_t *offset,
                            eplb_error *error)
{
    (void)entry;
    *offset = 0;
    return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED, "%s: no minizip", zip->input->name);
}

eplb_status eplb_zip_read(eplb_zip *zip, const eplb_zip_entry *entry, eplb_stream **stream,
                          eplb_error *error)
{
    (void)entry;
    *stream = NULL;
    return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED, "%s: no minizip", zip->input->name);
}
