/* SPDX-License-Identifier: MIT */
/* Results on standard output. */
#ifndef EPLB_TOOLS_OUTPUT_H
#define EPLB_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* Flushes standard output. Returns `exit_code`, or EXIT_FAILED with a message when what was printed
 * did not get out. */
int output_finish(int exit_code);

/* Says that memory ran out and returns EXIT_FAILED. */
int out_of_memory(void);

/* Begins a JSON document, an object. From here on running out of memory ends the program with
 * EXIT_FAILED: a document with fields missing would be worse. */
cJSON *json_begin(const char *schema);

/* Prints the document and frees it. Returns as output_finish. */
int json_finish(cJSON *document, int exit_code);

/* Adds a number, or null where there is none. */
void json_add_number(cJSON *object, const char *name, bool exists, double value);

/* Adds an integer, exact up to 64 bits. */
void json_add_integer(cJSON *object, const char *name, int64_t value);

/* Adds such an integer, or null where there is none. */
void json_add_known_integer(cJSON *object, const char *name, bool exists, int64_t value);

/* Adds a text that may hold any bytes: what is not UTF-8 becomes '?'. */
void json_add_text(cJSON *object, const char *name, const char *text);

#endif
