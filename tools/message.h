/* SPDX-License-Identifier: MIT */
/* What the command says on standard error: one line a message, whatever it quotes. */
#ifndef EPLB_TOOLS_MESSAGE_H
#define EPLB_TOOLS_MESSAGE_H

#include <stdint.h>

#include <eplb/status.h>

/* Exit codes; scripts rely on them. */
enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1, /* bad input, infeasible, or an I/O error */
    EXIT_USAGE = 2,
    EXIT_CHANGES = 10, /* plan --detailed-exitcode: the plan proposes changes */
};

/* Prints "eplb: <message>" and returns EXIT_FAILED. */
int fail(const eplb_error *error);

/* Prints "eplb: <text> (see 'eplb <command> --help')" and returns EXIT_USAGE. `command` may be
 * NULL for the command line before the sub-command. */
int usage_error(const char *command, const char *format, ...) EPLB_PRINTF(2, 3);

/* The ending of a noun behind a number: "" or "s". */
const char *plural(int64_t number);

/* A log hook of eplb_hooks: prints warnings as "eplb: warning: <message>", nothing else. */
void print_warning(void *context, int32_t level, const char *message);

#endif
