/* SPDX-License-Identifier: MIT */
#ifndef EPLB_FORMAT_SCAN_TOKEN_H
#define EPLB_FORMAT_SCAN_TOKEN_H

#include "format/scanner.h"

/* A number or a word of JSON, NUL-terminated. */
typedef struct eplb_token {
    char text[EPLB_NUMBER_LENGTH + 1];
    size_t length;
} eplb_token;

/* Reads up to the next white space or punctuation of JSON; may be empty. */
eplb_status eplb_scan_token(eplb_scanner *scanner, eplb_token *token, eplb_error *error);

/* Reads a number that must be a count, of whatever form; `words` name it in errors. */
eplb_status eplb_scan_number(eplb_scanner *scanner, const char *words, double *value, bool *integer,
                             eplb_token *token, eplb_error *error);

#endif
