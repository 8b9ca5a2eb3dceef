/* SPDX-License-Identifier: MIT */
/* Values of JSON that are checked and not kept. Nesting is a bit for each level, not a call. */
#include "format/quote.h"
#include "format/scan_token.h"
#include "format/scanner.h"

typedef struct nesting {
    uint64_t objects; /* lowest bit: the innermost level is an object */
    int depth;
} nesting;

static eplb_status skip_word_or_number(eplb_scanner *scanner, int next, eplb_error *error)
{
    eplb_token token;
    eplb_status status = eplb_scan_token(scanner, &token, error);
    if (status != EPLB_OK) {
        return status;
    }
    if (token.length == 0) {
        return eplb_scan_unexpected(scanner, next, "a value", error);
    }
    if (strcmp(token.text, "true") == 0 || strcmp(token.text, "false") == 0 ||
        strcmp(token.text, "null") == 0) {
        return EPLB_OK;
    }
    if (!eplb_number_check(token.text, token.length)) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error, "'%s' is not a value of JSON",
                              eplb_quote_bytes(token.text, token.length).text);
    }
    /* cJSON copies numbers into 64 bytes and goes on in the middle of longer ones. */
    if (scanner->for_cjson && token.length > 63) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error,
                              "a number of %zu characters, at most 63", token.length);
    }
    return EPLB_OK;
}

/* Reads '{' or '['. Inside an object that is not empty the first key is read, too. `closed`: the
 * container is empty and waits for its end. */
static eplb_status open_container(eplb_scanner *scanner, nesting *level, bool object, bool *closed,
                                  eplb_error *error)
{
    if (level->depth == EPLB_SCAN_DEPTH) {
        return eplb_scan_fail(scanner, EPLB_ERROR_PARSE, error,
                              "values are nested deeper than %d levels", EPLB_SCAN_DEPTH);
    }
    scanner->input->cursor++;
    level->objects = level->objects << 1 | (object ? 1 : 0);
    level->depth++;
    int next;
    eplb_status status = eplb_scan_peek(scanner, &next, error);
    *closed = next == (object ? '}' : ']');
    char key[EPLB_KEY_SIZE];
    return status == EPLB_OK && object && !*closed ? eplb_scan_key(scanner, key, error) : status;
}

/* Behind a value: closes all containers that end here, or goes on to the next value of one. */
static eplb_status close_containers(eplb_scanner *scanner, nesting *level, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    bool comma = false;
    while (status == EPLB_OK && level->depth > 0 && !comma) {
        bool object = (level->objects & 1) != 0;
        status = eplb_scan_either(scanner, ',', object ? '}' : ']', &comma, error);
        if (status == EPLB_OK && comma && object) {
            char key[EPLB_KEY_SIZE];
            status = eplb_scan_key(scanner, key, error);
        } else if (status == EPLB_OK && !comma) {
            level->objects >>= 1;
            level->depth--;
        }
    }
    return status;
}

/* Closes a container that was found empty. */
static void close_empty(eplb_scanner *scanner, nesting *level)
{
    scanner->input->cursor++;
    level->objects >>= 1;
    level->depth--;
}

eplb_status eplb_scan_skip(eplb_scanner *scanner, eplb_error *error)
{
    nesting level = {0};
    eplb_status status;
    do {
        int next;
        bool value_ended = true;
        status = eplb_scan_peek(scanner, &next, error);
        if (status == EPLB_OK && (next == '{' || next == '[')) {
            status = open_container(scanner, &level, next == '{', &value_ended, error);
            if (status == EPLB_OK && value_ended) {
                close_empty(scanner, &level);
            }
        } else if (status == EPLB_OK && next == '"') {
            size_t length;
            status = eplb_scan_string(scanner, NULL, 0, &length, error);
        } else if (status == EPLB_OK) {
            status = skip_word_or_number(scanner, next, error);
        }
        if (status == EPLB_OK && value_ended) {
            status = close_containers(scanner, &level, error);
        }
    } while (status == EPLB_OK && level.depth > 0);
    return status;
}
