/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/memory.h"
#include "format/display_name.h"
#include "format/format.h"
#include "format/options.h"
#include "format/quote.h"

static const char *words_for(uint32_t wanted)
{
    return wanted == EPLB_FORMAT_READS_COUNTS ? "counts" : "placements";
}

bool eplb_format_has_files(const eplb_format *format, uint32_t wanted)
{
    return wanted == EPLB_FORMAT_READS_COUNTS ? format->counts.open != NULL
                                              : format->placement.read != NULL;
}

/* Appends ", name" if there is room. */
static void add_name(char *names, size_t size, const char *name)
{
    size_t used = strlen(names);
    if (used + strlen(name) + 3 < size) {
        strcat(names, used > 0 ? ", " : "");
        strcat(names, name);
    }
}

eplb_probe eplb_reading_probe(const eplb_reading *reading, uint32_t wanted)
{
    const eplb_input *input = &reading->input;
    eplb_probe probe = {.data = input->cursor, .size = eplb_input_unread(input), .wanted = wanted};
    if (probe.size >= 3 && memcmp(probe.data, "\xEF\xBB\xBF", 3) == 0) {
        probe.data += 3;
        probe.size -= 3;
    }
    return probe;
}

/* The formats of what is `wanted` that the content fits: how many, their names, and the last. */
static int find_fitting(const eplb_reading *reading, uint32_t wanted, char *names, size_t size,
                        const eplb_format **last)
{
    eplb_probe probe = eplb_reading_probe(reading, wanted);
    int count = 0;
    const eplb_format *format;
    names[0] = '\0';
    for (size_t i = 0; (format = eplb_format_at(i)) != NULL; i++) {
        if (eplb_format_has_files(format, wanted) && format->probe(&probe)) {
            *last = format;
            count++;
            add_name(names, size, format->name);
        }
    }
    return count;
}

/* Fails with what the content is instead, or the names of all formats that it might have been of.
 */
static eplb_status not_recognised(const eplb_reading *reading, uint32_t wanted, eplb_error *error)
{
    uint32_t other = wanted ^ (EPLB_FORMAT_READS_COUNTS | EPLB_FORMAT_READS_PLACEMENT);
    const eplb_format *format;
    char names[200];
    if (find_fitting(reading, other, names, sizeof(names), &format) > 0) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: the content is of no known format of %s, but fits %s (%s)",
                              reading->input.name, words_for(wanted), words_for(other), names);
    }
    for (size_t i = 0; (format = eplb_format_at(i)) != NULL; i++) {
        if ((format->flags & wanted) != 0) {
            add_name(names, sizeof(names), format->name);
        }
    }
    return eplb_error_set(error, EPLB_ERROR_PARSE,
                          "%s: the content is of no known format of %s (%s)", reading->input.name,
                          words_for(wanted), names);
}

static eplb_status recognise(eplb_reading *reading, uint32_t wanted, const eplb_format **found,
                             eplb_error *error)
{
    char names[200];
    int count = find_fitting(reading, wanted, names, sizeof(names), found);
    if (count == 0) {
        return not_recognised(reading, wanted, error);
    }
    return count == 1 ? EPLB_OK
                      : eplb_error_set(error, EPLB_ERROR_PARSE,
                                       "%s: the content fits several formats of %s (%s): say which",
                                       reading->input.name, words_for(wanted), names);
}

/* Whoever names the format of a stream gets its first row before the prefix is full. */
static eplb_status choose_format(eplb_reading *reading, uint32_t wanted, const eplb_format **format,
                                 eplb_error *error)
{
    bool named = reading->options.format != NULL;
    eplb_status status = eplb_input_need(&reading->input, named ? 1 : EPLB_INPUT_PREFIX, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (eplb_input_unread(&reading->input) == 0) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: the file is empty",
                              reading->input.name);
    }
    if (!named) {
        return recognise(reading, wanted, format, error);
    }
    *format = reading->options.format;
    if (!eplb_format_has_files(*format, wanted)) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED, "%s: %s has no %s that can be read",
                              reading->input.name, (*format)->name, words_for(wanted));
    }
    return EPLB_OK;
}

static bool fits_directory(const eplb_format *format, const eplb_listing *listing)
{
    return format->counts.probe_directory != NULL && format->counts.probe_directory(listing);
}

/* The format that reads a directory. */
static eplb_status choose_directory_format(const eplb_reading *reading, const eplb_format **found,
                                           eplb_error *error)
{
    const eplb_format *named = reading->options.format;
    const char *name = reading->input.name;
    if (named != NULL && named->counts.probe_directory == NULL) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s: a directory, which is no recording of %s: give its files", name,
                              named->name);
    }
    const eplb_format *format;
    for (size_t i = 0; (format = eplb_format_at(i)) != NULL; i++) {
        if (format == named || (named == NULL && fits_directory(format, reading->listing))) {
            *found = format;
            return EPLB_OK;
        }
    }
    return eplb_error_set(error, EPLB_ERROR_IO, "%s: cannot read: Is a directory", name);
}

/* The input of a directory has a name only. */
static eplb_status open_directory(eplb_reading *reading, const char *path,
                                  const eplb_format **format, eplb_error *error)
{
    eplb_display_name shown = eplb_display_name_of(path);
    eplb_listing *listing = eplb_alloc(&reading->hooks, 1, sizeof(*listing));
    eplb_status status = listing != NULL ? eplb_listing_read(listing, &reading->hooks, path, error)
                                         : eplb_out_of_memory(error);
    if (status != EPLB_OK) {
        eplb_free(&reading->hooks, listing);
        return status;
    }
    reading->listing = listing;
    char *name = eplb_alloc(&reading->hooks, strlen(shown.text) + 1, 1);
    eplb_input_from_memory(&reading->input, name, "", 0);
    reading->input.hooks = reading->hooks;
    if (name == NULL) {
        return eplb_out_of_memory(error);
    }
    strcpy(name, shown.text);
    return choose_directory_format(reading, format, error);
}

static eplb_status open_file(eplb_reading *reading, const char *path, uint32_t wanted,
                             const eplb_format **format, eplb_error *error)
{
    eplb_status status = eplb_input_open(&reading->input, &reading->hooks, path, error);
    return status == EPLB_OK ? choose_format(reading, wanted, format, error) : status;
}

/* Who asks for an array of a file that has no names for them would get another one. */
static eplb_status check_array(const eplb_reading *reading, const eplb_format *format,
                               eplb_error *error)
{
    const char *array = reading->options.array;
    if (array == NULL || format->counts.names_arrays) {
        return EPLB_OK;
    }
    return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "%s: array '%s': %s has no arrays with names",
                          reading->input.name, eplb_quote_bytes(array, strlen(array)).text,
                          format->name);
}

eplb_status eplb_reading_open(eplb_reading *reading, const eplb_hooks *hooks, const char *path,
                              const eplb_read_options *options, uint32_t wanted,
                              const eplb_format **format, eplb_error *error)
{
    memset(reading, 0, sizeof(*reading));
    reading->hooks = reading->input.hooks = eplb_hooks_resolve(hooks);
    reading->rank = -1;
    eplb_status status = eplb_read_options_resolve(options, &reading->options, error);
    reading->logical_experts = reading->options.experts;
    if (status == EPLB_OK) {
        status = wanted == EPLB_FORMAT_READS_COUNTS && eplb_is_directory(path)
                     ? open_directory(reading, path, format, error)
                     : open_file(reading, path, wanted, format, error);
    }
    if (status == EPLB_OK && wanted == EPLB_FORMAT_READS_COUNTS) {
        status = check_array(reading, *format, error);
    }
    if (status != EPLB_OK) {
        eplb_reading_close(reading);
    }
    return status;
}

eplb_status eplb_reading_open_child(const eplb_reading *parent, const char *name,
                                    eplb_reading *child, eplb_error *error)
{
    *child = (eplb_reading){.hooks = parent->hooks,
                            .options = parent->options,
                            .logical_experts = parent->logical_experts,
                            .input = {.hooks = parent->hooks},
                            .rank = -1};
    char *path = eplb_listing_path(parent->listing, name);
    if (path == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_input_open(&child->input, &parent->hooks, path, error);
    eplb_free(&parent->hooks, path);
    return status;
}

void eplb_reading_close(eplb_reading *reading)
{
    eplb_input_close(&reading->input);
    if (reading->listing != NULL) {
        eplb_listing listing = *reading->listing;
        eplb_free(&reading->hooks, reading->listing);
        eplb_listing_clear(&listing);
        reading->listing = NULL;
    }
}

bool eplb_is_recording(const eplb_listing *listing)
{
    const eplb_format *format;
    for (size_t i = 0; (format = eplb_format_at(i)) != NULL; i++) {
        if (fits_directory(format, listing)) {
            return true;
        }
    }
    return false;
}

/* Doubles the buffer, at most to one byte more than the limit and the final NUL. */
static eplb_status grow_text(const eplb_reading *reading, char **text, size_t length,
                             size_t *capacity, eplb_error *error)
{
    if (*capacity - length > 1) {
        return EPLB_OK;
    }
    size_t next;
    if (!eplb_size_mul(*capacity > 0 ? *capacity : 4096, 2, &next)) {
        return eplb_out_of_memory(error);
    }
    char *bytes = eplb_realloc(&reading->hooks, *text, next, 1);
    if (bytes == NULL) {
        return eplb_out_of_memory(error);
    }
    *text = bytes;
    *capacity = next;
    return EPLB_OK;
}

/* What is held in memory may be so many times as long as the packed bytes that it comes from, and
 * this many bytes more: a small file that unpacks to hundreds of megabytes is hostile. */
#define UNPACKED_RATIO 512
#define UNPACKED_FREELY ((uint64_t)1 << 20)

eplb_status eplb_reading_check_unpacked(const eplb_reading *reading, uint64_t bytes,
                                        eplb_error *error)
{
    const eplb_input *input = &reading->input;
    return input->stream != NULL && bytes > UNPACKED_FREELY &&
                   (bytes - UNPACKED_FREELY) / UNPACKED_RATIO > input->stream->packed
               ? eplb_error_set(error, EPLB_ERROR_LIMIT,
                                "%s: %llu packed bytes unpack to more than %llu: unpack it first",
                                input->name, (unsigned long long)input->stream->packed,
                                (unsigned long long)bytes)
               : EPLB_OK;
}

static eplb_status check_length(const eplb_reading *reading, size_t length, eplb_error *error)
{
    return length > (uint64_t)reading->options.max_bytes
               ? eplb_error_set(error, EPLB_ERROR_LIMIT, "%s: more than %lld bytes",
                                reading->input.name, (long long)reading->options.max_bytes)
               : eplb_reading_check_unpacked(reading, length, error);
}

/* Appends what is in the buffer and fits, and reads on. */
static eplb_status take_block(eplb_reading *reading, char *text, size_t *length, size_t capacity,
                              eplb_error *error)
{
    eplb_input *input = &reading->input;
    size_t size = eplb_input_unread(input);
    size = size < capacity - *length - 1 ? size : capacity - *length - 1;
    memcpy(text + *length, input->cursor, size);
    *length += size;
    input->cursor += size;
    eplb_status status = check_length(reading, *length, error);
    return status == EPLB_OK ? eplb_input_need(input, 1, error) : status;
}

eplb_status eplb_reading_read_all(eplb_reading *reading, char **text, size_t *length,
                                  eplb_error *error)
{
    size_t capacity = 0;
    *text = NULL;
    *length = 0;
    bool at_start = eplb_input_offset(&reading->input, reading->input.cursor) == 0;
    eplb_status status = at_start ? eplb_input_skip_bom(&reading->input, error) : EPLB_OK;
    do {
        if (status == EPLB_OK) {
            status = grow_text(reading, text, *length, &capacity, error);
        }
        if (status == EPLB_OK) {
            status = take_block(reading, *text, length, capacity, error);
        }
    } while (status == EPLB_OK && eplb_input_unread(&reading->input) > 0);
    if (status != EPLB_OK) {
        eplb_free(&reading->hooks, *text);
        *text = NULL;
        return status;
    }
    (*text)[*length] = '\0';
    return EPLB_OK;
}
