/* SPDX-License-Identifier: MIT */
#include "format/torch.h"

#include <stdio.h>

#include "base/memory.h"
#include "format/probe_zip.h"
#include "format/quote.h"

static const char pickle_name[] = "/data.pkl";

static eplb_status fail(const eplb_torch *self, eplb_status status, const char *what,
                        eplb_error *error)
{
    return eplb_error_set(error, status, "%s: %s", self->input->name, what);
}

static bool is_pickle(const char *name)
{
    size_t length = strlen(name);
    return eplb_has_suffix(name, length, pickle_name) &&
           strchr(name, '/') == name + length - strlen(pickle_name);
}

/* The one entry "<root>/data.pkl" says what the root is. */
static eplb_status find_pickle(eplb_torch *self, const eplb_zip_entry **pickle, eplb_error *error)
{
    size_t found = 0;
    for (size_t i = 0; i < self->zip.count; i++) {
        if (is_pickle(self->zip.entries[i].name)) {
            *pickle = &self->zip.entries[i];
            found++;
        }
    }
    if (found != 1) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: zip archive: %zu entries '<name>/data.pkl', expected one as "
                              "torch.save writes it",
                              self->input->name, found);
    }
    self->root_length = strlen((*pickle)->name) - strlen(pickle_name);
    self->entry = eplb_alloc(&self->hooks, self->root_length + EPLB_TORCH_NAME_ROOM, 1);
    if (self->entry == NULL) {
        return eplb_out_of_memory(error);
    }
    memcpy(self->entry, (*pickle)->name, self->root_length);
    return EPLB_OK;
}

const eplb_zip_entry *eplb_torch_entry(eplb_torch *torch, const char *name)
{
    strcpy(torch->entry + torch->root_length, name);
    return eplb_zip_find(&torch->zip, torch->entry);
}

/* Older files do not say the order of bytes; then it is little-endian. */
static eplb_status check_order(eplb_torch *self, eplb_error *error)
{
    static const char known[] = "little";
    char order[sizeof(known)] = "";
    uint64_t offset;
    const eplb_zip_entry *entry = eplb_torch_entry(self, "/byteorder");
    if (entry == NULL) {
        return EPLB_OK;
    }
    size_t size = entry->size < sizeof(order) ? (size_t)entry->size : sizeof(order);
    eplb_status status = eplb_zip_locate(&self->zip, entry, &offset, error);
    if (status == EPLB_OK) {
        status = eplb_input_read_at(self->input, order, size, offset, error);
    }
    if (status == EPLB_OK && (size != strlen(known) || memcmp(order, known, size) != 0)) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED, "%s: byte order '%s', expected '%s'",
                              self->input->name, eplb_quote_bytes(order, size).text, known);
    }
    return status;
}

/* Reads an entry as a whole, and checks its checksum. */
static eplb_status read_entry(eplb_torch *self, const eplb_zip_entry *entry, eplb_error *error)
{
    eplb_stream *stream;
    eplb_status status = eplb_zip_read(&self->zip, entry, &stream, error);
    if (status != EPLB_OK) {
        return status;
    }
    size_t length = 0;
    size_t got;
    do {
        /* A byte more than there are, to come to the end where the checksum is checked. */
        status = stream->read(stream, self->bytes + length, (size_t)entry->size - length + 1, &got,
                              error);
        length += got;
    } while (status == EPLB_OK && got > 0 && length <= entry->size);
    stream->close(stream);
    if (status == EPLB_OK && length != entry->size) {
        return fail(self, EPLB_ERROR_PARSE, "data.pkl: longer than the archive says", error);
    }
    return status;
}

static eplb_status run_pickle(eplb_torch *self, const eplb_zip_entry *entry, int64_t max_bytes,
                              eplb_error *error)
{
    uint64_t limit = max_bytes < INT32_MAX ? (uint64_t)max_bytes : INT32_MAX;
    uint64_t offset;
    if (entry->size > limit) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT, "%s: data.pkl of %llu bytes, at most %llu",
                              self->input->name, (unsigned long long)entry->size,
                              (unsigned long long)limit);
    }
    /* Also a check that the bytes are there before memory is taken for them. */
    eplb_status status = eplb_zip_locate(&self->zip, entry, &offset, error);
    if (status != EPLB_OK) {
        return status;
    }
    size_t size = (size_t)entry->size;
    self->bytes = eplb_alloc(&self->hooks, size + 1, 1);
    status = self->bytes != NULL ? read_entry(self, entry, error) : eplb_out_of_memory(error);
    if (status != EPLB_OK) {
        return status;
    }
    char name[250];
    snprintf(name, sizeof(name), "%s: data.pkl", self->input->name);
    return eplb_pickle_run(&self->pickle, &self->hooks, name, self->bytes, size, error);
}

eplb_status eplb_torch_open(eplb_torch *torch, const eplb_hooks *hooks, eplb_input *input,
                            int64_t max_bytes, eplb_error *error)
{
    *torch = (eplb_torch){.hooks = *hooks, .input = input, .pickle = {.hooks = *hooks}};
    eplb_status status = eplb_zip_open(&torch->zip, hooks, input, error);
    if (status != EPLB_OK) {
        return status;
    }
    const eplb_zip_entry *pickle = NULL;
    (void)eplb_input_size(input, &torch->file_size); /* an archive that is open has one */
    status = find_pickle(torch, &pickle, error);
    if (status == EPLB_OK) {
        status = check_order(torch, error);
    }
    return status == EPLB_OK ? run_pickle(torch, pickle, max_bytes, error) : status;
}

void eplb_torch_close(eplb_torch *torch)
{
    eplb_zip_close(&torch->zip);
    eplb_pickle_clear(&torch->pickle);
    eplb_free(&torch->hooks, torch->entry);
    eplb_free(&torch->hooks, torch->bytes);
    eplb_free(&torch->hooks, torch->window);
    torch->entry = torch->bytes = torch->window = NULL;
}
