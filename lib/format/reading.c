/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/memory.h"
#include "format/format.h"
#include "format/options.h"

static const char *words_for(uint32_t wanted)
{
    return wanted == EPLB_FORMAT_READS_COUNTS ? "counts" : "placements";
}

/* Whether a format has such files. It may be one that this build cannot read: then its reader says
 * why, which its flags could not. */
static bool has_files(const eplb_format *format, uint32_t wanted)
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

/* Fails with the names of those formats that fit, or of all that might have. */
static eplb_status not_recognised(const eplb_reading *reading, uint32_t wanted, const char *fitting,
                                  eplb_error *error)
{
    if (fitting[0] != '\0') {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: the content fits several formats of %s (%s): say which",
                              reading->input.name, words_for(wanted), fitting);
    }
    char names[200] = "";
    const eplb_format *format;
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
    const eplb_input *input = &reading->input;
    eplb_probe probe = {.data = input->cursor, .size = eplb_input_unread(input), .wanted = wanted};
    if (probe.size >= 3 && memcmp(probe.data, "\xEF\xBB\xBF", 3) == 0) {
        probe.data += 3;
        probe.size -= 3;
    }
    char names[200] = "";
    int count = 0;
    const eplb_format *format;
    for (size_t i = 0; (format = eplb_format_at(i)) != NULL; i++) {
        if (has_files(format, wanted) && format->probe(&probe)) {
            *found = format;
            count++;
            add_name(names, sizeof(names), format->name);
        }
    }
    return count == 1 ? EPLB_OK : not_recognised(reading, wanted, names, error);
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
    if (!has_files(*format, wanted)) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED, "%s: %s has no %s that can be read",
                              reading->input.name, (*format)->name, words_for(wanted));
    }
    return EPLB_OK;
}

eplb_status eplb_reading_open(eplb_reading *reading, const eplb_hooks *hooks, const char *path,
                              const eplb_read_options *options, uint32_t wanted,
                              const eplb_format **format, eplb_error *error)
{
    memset(reading, 0, sizeof(*reading));
    reading->hooks = eplb_hooks_resolve(hooks);
    eplb_status status = eplb_read_options_resolve(options, &reading->options, error);
    if (status == EPLB_OK) {
        status = eplb_input_open(&reading->input, &reading->hooks, path, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    status = choose_format(reading, wanted, format, error);
    if (status != EPLB_OK) {
        eplb_reading_close(reading);
    }
    return status;
}

void eplb_reading_close(eplb_reading *reading)
{
    eplb_input_close(&reading->input);
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
    if (*length > (uint64_t)reading->options.max_bytes) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT, "%s: more than %lld bytes", input->name,
                              (long long)reading->options.max_bytes);
    }
    return eplb_input_need(input, 1, error);
}

eplb_status eplb_reading_read_all(eplb_reading *reading, char **text, size_t *length,
                                  eplb_error *error)
{
    size_t capacity = 0;
    *text = NULL;
    *length = 0;
    eplb_status status = eplb_input_skip_bom(&reading->input, error);
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
