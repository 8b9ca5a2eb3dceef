/* SPDX-License-Identifier: MIT */
/* Counts as an array of a .npz archive: the reader of .npy on the content of an entry. */
#include "base/memory.h"
#include "format/format.h"
#include "format/probe_zip.h"
#include "format/quote.h"
#include "format/read_ahead.h"
#include "format/zip.h"

#define SUFFIX ".npy"

typedef struct npz {
    eplb_zip zip;
    eplb_reading array; /* what is read of the archive */
    bool is_open;
} npz;

static bool probe(const eplb_probe *probe)
{
    return eplb_probe_zip_entry(probe, SUFFIX);
}

/* Appends " 'name'" of each array, as far as there is room. */
static void list_arrays(const eplb_zip *zip, char *list, size_t size)
{
    list[0] = '\0';
    for (size_t i = 0; i < zip->count; i++) {
        const char *name = zip->entries[i].name;
        size_t length = strlen(name);
        if (eplb_has_suffix(name, length, SUFFIX)) {
            eplb_quote_append(list, size, name, length - strlen(SUFFIX));
        }
    }
}

/* The array that is asked for, by its name with or without .npy, or the only one. */
static eplb_status choose_array(const eplb_zip *zip, const eplb_reading *reading,
                                const eplb_zip_entry **entry, eplb_error *error)
{
    const char *wanted = reading->options.array;
    size_t count = 0;
    for (size_t i = 0; i < zip->count; i++) {
        const char *name = zip->entries[i].name;
        size_t length = strlen(name);
        bool is_array = eplb_has_suffix(name, length, SUFFIX);
        bool is_wanted = wanted == NULL || strcmp(name, wanted) == 0 ||
                         (strncmp(name, wanted, strlen(wanted)) == 0 &&
                          strcmp(name + strlen(wanted), SUFFIX) == 0);
        if (is_array && is_wanted) {
            *entry = &zip->entries[i];
            count++;
        }
    }
    if (count == 1) {
        return EPLB_OK;
    }
    char list[150];
    list_arrays(zip, list, sizeof(list));
    if (list[0] == '\0') {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: no arrays (entries that end in " SUFFIX ")",
                              reading->input.name);
    }
    return wanted != NULL
               ? eplb_error_set(error, EPLB_ERROR_ARGUMENT, "%s: no array '%s' among%s",
                                reading->input.name, eplb_quote_bytes(wanted, strlen(wanted)).text,
                                list)
               : eplb_error_set(error, EPLB_ERROR_ARGUMENT, "%s: %zu arrays, say which one:%s",
                                reading->input.name, count, list);
}

/* The name of what is read, for messages: "file.npz: steps.npy". */
static char *array_name(const eplb_reading *reading, const eplb_zip_entry *entry)
{
    eplb_quote quoted = eplb_quote_bytes(entry->name, strlen(entry->name));
    const char *archive = reading->input.name;
    char *name = eplb_alloc(&reading->hooks, strlen(archive) + strlen(quoted.text) + 3, 1);
    return name != NULL ? strcat(strcat(strcpy(name, archive), ": "), quoted.text) : NULL;
}

static eplb_status open_array(npz *self, const eplb_reading *reading, eplb_error *error)
{
    const eplb_zip_entry *entry = NULL;
    eplb_status status = choose_array(&self->zip, reading, &entry, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_stream *stream;
    status = eplb_zip_read(&self->zip, entry, &stream, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_reading *array = &self->array;
    array->hooks = reading->hooks;
    array->options = reading->options;
    array->rank = -1;
    char *name = array_name(reading, entry);
    eplb_stream *ahead = eplb_read_ahead(stream, &reading->hooks);
    stream = ahead != NULL ? ahead : stream;
    status = name != NULL && ahead != NULL
                 ? eplb_input_from_stream(&array->input, &reading->hooks, name, stream, error)
                 : eplb_out_of_memory(error);
    if (status != EPLB_OK) {
        stream->close(stream);
        eplb_free(&reading->hooks, name);
        return status;
    }
    self->is_open = true;
    return eplb_format_npy.counts.open(array, error);
}

static eplb_status open_counts(eplb_reading *reading, eplb_error *error)
{
    npz *self = eplb_alloc_zeroed(&reading->hooks, 1, sizeof(*self));
    reading->state = self;
    if (self == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_zip_open(&self->zip, &reading->hooks, &reading->input, error);
    return status == EPLB_OK ? open_array(self, reading, error) : status;
}

static eplb_status next_counts(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    npz *self = reading->state;
    return eplb_format_npy.counts.next(&self->array, row, error);
}

static void close_counts(eplb_reading *reading)
{
    npz *self = reading->state;
    if (self == NULL) {
        return;
    }
    if (self->is_open) {
        eplb_format_npy.counts.close(&self->array);
        eplb_reading_close(&self->array);
    }
    eplb_zip_close(&self->zip);
    eplb_free(&reading->hooks, self);
}

const eplb_format eplb_format_npz = {
    .name = "npz",
    .description = "NumPy archive with such an array",
    .engine = "any (NumPy)",
    .recognised = "a zip whose first entry is an .npy",
    .flags = EPLB_ZIP_READS_COUNTS,
    .probe = probe,
    .counts = {.open = open_counts,
               .next = next_counts,
               .close = close_counts,
               .names_arrays = true},
};
