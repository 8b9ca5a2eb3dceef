/* SPDX-License-Identifier: MIT */
#include "format/npy_header.h"

#include <string.h>

#include "format/quote.h"

/* The dictionary that the header is: a Python literal, of which only what NumPy writes is known. */
typedef struct literal {
    const eplb_input *input;
    const char *next;
    const char *end;
} literal;

static eplb_status header_error(const literal *text, const char *what, eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: byte %llu: header: %s", text->input->name,
                          (unsigned long long)eplb_input_offset(text->input, text->next), what);
}

static bool accept(literal *text, char wanted)
{
    while (text->next < text->end && *text->next == ' ') {
        text->next++;
    }
    if (text->next == text->end || *text->next != wanted) {
        return false;
    }
    text->next++;
    return true;
}

/* Reads a short string in quotes of either kind. */
static bool accept_string(literal *text, char string[16])
{
    char quote = accept(text, '\'') ? '\'' : '"';
    if (quote == '"' && !accept(text, '"')) {
        return false;
    }
    for (size_t length = 0; text->next < text->end && length < 16; length++) {
        char c = *text->next++;
        if (c == quote) {
            string[length] = '\0';
            return true;
        }
        string[length] = c;
    }
    return false;
}

static bool accept_word(literal *text, const char *word)
{
    size_t length = strlen(word);
    while (text->next < text->end && *text->next == ' ') {
        text->next++;
    }
    if ((size_t)(text->end - text->next) < length || memcmp(text->next, word, length) != 0) {
        return false;
    }
    text->next += length;
    return true;
}

/* Item types are an order of bytes, a kind and a size: "<i8". */
static eplb_status read_type(literal *text, eplb_npy_header *header, eplb_error *error)
{
    char type[16];
    if (!accept_string(text, type)) {
        return header_error(text, "'descr' is not a short string: only plain arrays can be read",
                            error);
    }
    static const char *const known[] = {"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"};
    bool fits =
        strlen(type) == 3 && strchr("<>|", type[0]) != NULL && (type[0] != '|' || type[2] == '1');
    for (size_t i = 0; fits && i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(type + 1, known[i]) == 0) {
            header->item.big_endian = type[0] == '>';
            header->item.kind = type[1];
            header->item.size = (size_t)(type[2] - '0');
            return EPLB_OK;
        }
    }
    return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                          "%s: header: items of type '%s', expected integers of 8 to 64 bits or "
                          "floats of 32 or 64",
                          text->input->name, eplb_quote_bytes(type, strlen(type)).text);
}

static eplb_status read_order(literal *text, eplb_npy_header *header, eplb_error *error)
{
    header->fortran_order = accept_word(text, "True");
    if (!header->fortran_order && !accept_word(text, "False")) {
        return header_error(text, "'fortran_order' is neither True nor False", error);
    }
    return EPLB_OK;
}

static bool accept_size(literal *text, size_t *size)
{
    *size = 0;
    int digits = 0;
    while (text->next < text->end && *text->next >= '0' && *text->next <= '9' && digits < 19) {
        *size = *size * 10 + (size_t)(*text->next++ - '0');
        digits++;
    }
    return digits > 0 && digits < 19;
}

static eplb_status read_shape(literal *text, eplb_npy_header *header, eplb_error *error)
{
    header->dimensions = 0;
    if (!accept(text, '(')) {
        return header_error(text, "'shape' is not a tuple", error);
    }
    bool comma = true;
    while (!accept(text, ')')) {
        size_t size;
        if (!comma || !accept_size(text, &size)) {
            return header_error(text, "'shape' is not a tuple of sizes below 10^18", error);
        }
        if (header->dimensions < 3) {
            header->shape[header->dimensions] = size;
        }
        header->dimensions++;
        comma = accept(text, ',');
    }
    return EPLB_OK;
}

static eplb_status read_member(literal *text, eplb_npy_header *header, unsigned *seen,
                               eplb_error *error)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[16];
    if (!accept_string(text, key) || !accept(text, ':')) {
        return header_error(text, "expected a key and ':'", error);
    }
    unsigned index = 0;
    while (index < 3 && strcmp(key, keys[index]) != 0) {
        index++;
    }
    if (index == 3 || (*seen & 1u << index) != 0) {
        return header_error(text, index == 3 ? "unknown key" : "second key of one name", error);
    }
    *seen |= 1u << index;
    while (text->next < text->end && *text->next == ' ') {
        text->next++;
    }
    return index == 0   ? read_type(text, header, error)
           : index == 1 ? read_order(text, header, error)
                        : read_shape(text, header, error);
}

static eplb_status read_dictionary(literal *text, eplb_npy_header *header, eplb_error *error)
{
    if (!accept(text, '{')) {
        return header_error(text, "expected '{'", error);
    }
    unsigned seen = 0;
    bool comma = true;
    while (!accept(text, '}')) {
        if (!comma) {
            return header_error(text, "expected ',' or '}'", error);
        }
        eplb_status status = read_member(text, header, &seen, error);
        if (status != EPLB_OK) {
            return status;
        }
        comma = accept(text, ',');
    }
    if (seen != 7) {
        return header_error(text, "'descr', 'fortran_order' or 'shape' is missing", error);
    }
    accept(text, '\n');
    return text->next == text->end ? EPLB_OK
                                   : header_error(text, "content behind the dictionary", error);
}

/* Reads the fixed part; *length is the size of the dictionary behind it. */
static eplb_status read_preamble(literal *text, size_t *length, eplb_error *error)
{
    const unsigned char *bytes = (const unsigned char *)text->next;
    size_t unread = eplb_input_unread(text->input);
    if (unread < 12 || memcmp(bytes, EPLB_NPY_MAGIC, EPLB_NPY_MAGIC_SIZE) != 0) {
        return header_error(text, "not a .npy file, or its first 12 bytes are missing", error);
    }
    unsigned major = bytes[6];
    if (major < 1 || major > 3 || bytes[7] != 0) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s: header: version %u.%u, known are 1.0, 2.0 and 3.0",
                              text->input->name, major, bytes[7]);
    }
    size_t preamble = major == 1 ? 10 : 12;
    *length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (major > 1) {
        *length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    text->next += preamble;
    if (*length > EPLB_INPUT_PREFIX - preamble) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT, "%s: header of %zu bytes, at most %zu",
                              text->input->name, *length, EPLB_INPUT_PREFIX - preamble);
    }
    if (*length > unread - preamble) {
        return header_error(text, "the file ends within it", error);
    }
    return EPLB_OK;
}

eplb_status eplb_npy_read_header(eplb_input *input, eplb_npy_header *header, eplb_error *error)
{
    size_t length = 0;
    eplb_status status = eplb_input_need(input, EPLB_INPUT_PREFIX, error);
    literal text = {.input = input, .next = input->cursor, .end = input->limit};
    if (status == EPLB_OK) {
        status = read_preamble(&text, &length, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    text.end = text.next + length;
    status = read_dictionary(&text, header, error);
    header->data_offset = eplb_input_offset(input, text.end);
    input->cursor = text.end;
    return status;
}
