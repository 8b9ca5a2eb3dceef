/* SPDX-License-Identifier: MIT */
/* Strings of JSON: keys, and those that are only checked. */
#include "format/scanner.h"

/* Where the decoded bytes go. What does not fit is only checked. */
typedef struct text_sink {
    char *text; /* [size], may be NULL */
    size_t size;
    size_t length; /* of the whole string, also when it did not fit */
} text_sink;

static void add_byte(text_sink *sink, unsigned byte)
{
    if (sink->length < sink->size) {
        sink->text[sink->length] = (char)(unsigned char)byte;
    }
    sink->length++;
}

static void add_code_point(text_sink *sink, unsigned code)
{
    if (code < 0x80) {
        add_byte(sink, code);
    } else if (code < 0x800) {
        add_byte(sink, 0xc0 | code >> 6);
        add_byte(sink, 0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        add_byte(sink, 0xe0 | code >> 12);
        add_byte(sink, 0x80 | (code >> 6 & 0x3f));
        add_byte(sink, 0x80 | (code & 0x3f));
    } else {
        add_byte(sink, 0xf0 | code >> 18);
        add_byte(sink, 0x80 | (code >> 12 & 0x3f));
        add_byte(sink, 0x80 | (code >> 6 & 0x3f));
        add_byte(sink, 0x80 | (code & 0x3f));
    }
}

/* Reads the next byte of a string, whatever it is. */
static eplb_status take_byte(eplb_scanner *scanner, unsigned *byte, eplb_error *error)
{
    eplb_input *input = scanner->input;
    eplb_status status = eplb_input_unread(input) > 0 ? EPLB_OK : eplb_input_need(input, 1, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (eplb_input_unread(input) == 0) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error,
                              "a string does not end: found the end of the file");
    }
    *byte = (unsigned char)*input->cursor++;
    return EPLB_OK;
}

static eplb_status take_four_hex(eplb_scanner *scanner, unsigned *code, eplb_error *error)
{
    *code = 0;
    for (int i = 0; i < 4; i++) {
        unsigned byte = 0;
        eplb_status status = take_byte(scanner, &byte, error);
        if (status != EPLB_OK) {
            return status;
        }
        if (byte >= '0' && byte <= '9') {
            *code = *code << 4 | (byte - '0');
        } else if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f') {
            *code = *code << 4 | ((byte | 0x20) - 'a' + 10);
        } else {
            return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error,
                                  "a string has \\u without four hexadecimal digits");
        }
    }
    return EPLB_OK;
}

static eplb_status take_low_surrogate(eplb_scanner *scanner, unsigned *code, eplb_error *error)
{
    unsigned backslash = 0;
    unsigned u = 0;
    unsigned low = 0;
    eplb_status status = take_byte(scanner, &backslash, error);
    if (status == EPLB_OK && backslash == '\\') {
        status = take_byte(scanner, &u, error);
    }
    if (status == EPLB_OK && u == 'u') {
        status = take_four_hex(scanner, &low, error);
    }
    if (status == EPLB_OK && (low < 0xdc00 || low > 0xdfff)) {
        status = eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error,
                                "a string has half of a surrogate pair");
    }
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return status;
}

static eplb_status take_unicode(eplb_scanner *scanner, text_sink *sink, eplb_error *error)
{
    unsigned code = 0;
    eplb_status status = take_four_hex(scanner, &code, error);
    if (status == EPLB_OK && code >= 0xdc00 && code <= 0xdfff) {
        status = eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error,
                                "a string has half of a surrogate pair");
    } else if (status == EPLB_OK && code >= 0xd800 && code <= 0xdbff) {
        status = take_low_surrogate(scanner, &code, error);
    }
    if (status == EPLB_OK && code == 0 && scanner->for_cjson) {
        status = eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "a string has U+0000");
    }
    if (status == EPLB_OK) {
        add_code_point(sink, code);
    }
    return status;
}

static eplb_status take_escape(eplb_scanner *scanner, text_sink *sink, eplb_error *error)
{
    static const char escapes[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    unsigned byte = 0;
    eplb_status status = take_byte(scanner, &byte, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (byte == 'u') {
        return take_unicode(scanner, sink, error);
    }
    const char *escape = byte != 0 ? strchr(escapes, (int)byte) : NULL;
    if (escape == NULL) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error,
                              "a string has an unknown escape, \\ and byte 0x%02x", byte);
    }
    add_byte(sink, (unsigned char)meanings[escape - escapes]);
    return EPLB_OK;
}

eplb_status eplb_scan_string(eplb_scanner *scanner, char *text, size_t size, size_t *length,
                             eplb_error *error)
{
    text_sink sink = {.text = text, .size = size};
    eplb_status status = eplb_scan_expect(scanner, '"', "a string", error);
    unsigned byte = 0;
    while (status == EPLB_OK) {
        status = take_byte(scanner, &byte, error);
        if (status != EPLB_OK || byte == '"') {
            break;
        }
        if (byte == '\\') {
            status = take_escape(scanner, &sink, error);
        } else if (byte < 0x20) {
            status = eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error,
                                    "a string has control character 0x%02x", byte);
        } else {
            add_byte(&sink, byte);
        }
    }
    *length = sink.length;
    return status;
}

eplb_status eplb_scan_key(eplb_scanner *scanner, char key[EPLB_KEY_SIZE], eplb_error *error)
{
    size_t length = 0;
    eplb_status status = eplb_scan_string(scanner, key, EPLB_KEY_SIZE - 1, &length, error);
    if (status == EPLB_OK) {
        key[length < EPLB_KEY_SIZE ? length : 0] = '\0';
        status = eplb_scan_expect(scanner, ':', "':' after a key", error);
    }
    return status;
}

eplb_status eplb_scan_more(eplb_scanner *scanner, char end, bool *first, bool *more,
                           eplb_error *error)
{
    if (!*first) {
        return eplb_scan_either(scanner, ',', end, more, error);
    }
    int next;
    eplb_status status = eplb_scan_peek(scanner, &next, error);
    *first = false;
    *more = status != EPLB_OK || next != end;
    scanner->input->cursor += *more ? 0 : 1;
    return status;
}

eplb_status eplb_scan_next_key(eplb_scanner *scanner, bool *first, char key[EPLB_KEY_SIZE],
                               bool *more, eplb_error *error)
{
    *more = true;
    eplb_status status = eplb_scan_more(scanner, '}', first, more, error);
    return status == EPLB_OK && *more ? eplb_scan_key(scanner, key, error) : status;
}
