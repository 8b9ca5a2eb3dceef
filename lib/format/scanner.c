/* SPDX-License-Identifier: MIT */
#include "format/scanner.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

eplb_status eplb_scanner_init(eplb_scanner *scanner, eplb_input *input, eplb_error *error)
{
    *scanner =
        (eplb_scanner){.input = input, .step = -1, .layer = -1, .expert = -1, .item = "expert"};
    scanner->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return scanner->c_locale != (locale_t)0 ? EPLB_OK : eplb_out_of_memory(error);
}

void eplb_scanner_close(eplb_scanner *scanner)
{
    if (scanner->c_locale != (locale_t)0) {
        freelocale(scanner->c_locale);
        scanner->c_locale = (locale_t)0;
    }
}

/* Writes "step 3: layer 2: expert 7: " as far as it is known. */
static void describe_place(const eplb_scanner *scanner, char *text, size_t size)
{
    const struct {
        const char *word;
        int64_t number;
    } parts[] = {
        {"step", scanner->step}, {"layer", scanner->layer}, {scanner->item, scanner->expert}};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].number >= 0) {
            int wrote = snprintf(text + used, size - used, "%s %lld: ", parts[i].word,
                                 (long long)parts[i].number);
            used += (size_t)wrote;
        }
    }
}

eplb_status eplb_scan_fail(const eplb_scanner *scanner, eplb_status status, eplb_error *error,
                           const char *format, ...)
{
    char place[96];
    char text[256];
    char column[32] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    describe_place(scanner, place, sizeof(place));
    if (!scanner->one_line) {
        snprintf(column, sizeof(column), "%llu:",
                 (unsigned long long)(scanner->token_offset - scanner->input->line_offset + 1));
    }
    return eplb_error_set(error, status, "%s:%lld:%s %s%s", scanner->input->name,
                          (long long)scanner->input->line, column, place, text);
}

eplb_status eplb_scan_peek(eplb_scanner *scanner, int *next, eplb_error *error)
{
    eplb_input *input = scanner->input;
    for (;;) {
        const char *p = input->cursor;
        while (*p == ' ' || *p == '\t' || *p == '\r' || (*p == '\n' && !scanner->one_line)) {
            if (*p == '\n') {
                eplb_input_newline(input, p);
            }
            p++;
        }
        input->cursor = p;
        scanner->token_offset = eplb_input_offset(input, p);
        if (p < input->limit || input->at_end) {
            *next = p < input->limit ? (unsigned char)*p : EPLB_SCAN_END;
            return EPLB_OK;
        }
        eplb_status status = eplb_input_fill(input, error);
        if (status != EPLB_OK) {
            return status;
        }
    }
}

eplb_status eplb_scan_unexpected(const eplb_scanner *scanner, int found, const char *expected,
                                 eplb_error *error)
{
    char text[32];
    if (found == EPLB_SCAN_END) {
        snprintf(text, sizeof(text), "the end of the file");
    } else if (found == '\n') {
        snprintf(text, sizeof(text), "the end of the line");
    } else if (found > 0x20 && found < 0x7f) {
        snprintf(text, sizeof(text), "'%c'", found);
    } else {
        snprintf(text, sizeof(text), "byte 0x%02x", (unsigned)found);
    }
    return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "expected %s, found %s", expected,
                          text);
}

eplb_status eplb_scan_expect(eplb_scanner *scanner, char wanted, const char *words,
                             eplb_error *error)
{
    int next;
    eplb_status status = eplb_scan_peek(scanner, &next, error);
    if (status == EPLB_OK && next != wanted) {
        status = eplb_scan_unexpected(scanner, next, words, error);
    }
    if (status == EPLB_OK) {
        scanner->input->cursor++;
    }
    return status;
}

eplb_status eplb_scan_either(eplb_scanner *scanner, char wanted, char otherwise, bool *is_wanted,
                             eplb_error *error)
{
    int next;
    eplb_status status = eplb_scan_peek(scanner, &next, error);
    if (status != EPLB_OK) {
        return status;
    }
    *is_wanted = next == wanted;
    if (next != wanted && next != otherwise) {
        char words[] = "'?' or '?'";
        words[1] = wanted;
        words[8] = otherwise;
        return eplb_scan_unexpected(scanner, next, words, error);
    }
    scanner->input->cursor++;
    return EPLB_OK;
}

eplb_status eplb_scan_first_time(const eplb_scanner *scanner, bool *has, const char *key,
                                 eplb_error *error)
{
    if (*has) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "second key '%s'", key);
    }
    *has = true;
    return EPLB_OK;
}

eplb_status eplb_scan_next_line(eplb_scanner *scanner, int *next, eplb_error *error)
{
    eplb_status status = eplb_scan_peek(scanner, next, error);
    while (status == EPLB_OK && *next == '\n') {
        eplb_input_newline(scanner->input, scanner->input->cursor++);
        status = eplb_scan_peek(scanner, next, error);
    }
    return status;
}

eplb_status eplb_scan_line_end(eplb_scanner *scanner, eplb_error *error)
{
    int next;
    eplb_status status = eplb_scan_peek(scanner, &next, error);
    if (status == EPLB_OK && next != '\n' && next != EPLB_SCAN_END) {
        status = eplb_scan_unexpected(scanner, next, "the end of the line", error);
    }
    return status;
}

eplb_status eplb_scan_finish(eplb_scanner *scanner, eplb_error *error)
{
    int next;
    eplb_status status = eplb_scan_peek(scanner, &next, error);
    if (status == EPLB_OK && next != EPLB_SCAN_END) {
        status = eplb_scan_unexpected(scanner, next, "the end of the file", error);
    }
    return status;
}
