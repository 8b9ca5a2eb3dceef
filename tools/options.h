/* SPDX-License-Identifier: MIT */
/* The command line of one sub-command: described once, in a table that drives both parsing and the
 * help text. */
#ifndef EPLB_TOOLS_OPTIONS_H
#define EPLB_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What whole numbers and amounts are where the default is not a value of theirs. */
#define NOT_GIVEN (-1)

/* What an option's value is, and the type of its target. */
typedef enum option_kind {
    OPTION_FLAG,   /* bool; takes no value */
    OPTION_INT,    /* int32_t in minimum..maximum */
    OPTION_SEED,   /* uint64_t, all values */
    OPTION_REAL,   /* double above `minimum`, at most `maximum` */
    OPTION_AMOUNT, /* double in minimum..maximum */
    OPTION_CHOICE, /* int32_t, an index into `choices` */
    OPTION_TEXT,   /* const char *, not empty */
    OPTION_OUTPUT, /* const char *, a file to write; "-" where it names standard output */
    OPTION_TEXTS,  /* text_list; may be given more than once */
    OPTION_IDS,    /* id_list in minimum..maximum, such as 0-2,60 or 8-64x2, or none */
    OPTION_SIZE,   /* int64_t, bytes such as 80GiB, above 0 where minimum is 1 */
    OPTION_SIZES,  /* size_list, such as 80GiB,40GiB */
} option_kind;

typedef struct text_list {
    const char **items; /* pointers into argv */
    int32_t count;
} text_list;

typedef struct id_list {
    int32_t *items; /* ascending; NULL when the option was not given */
    int32_t count;
} id_list;

typedef struct size_list {
    int64_t *items; /* bytes, in the order given; NULL when the option was not given */
    int32_t count;
} size_list;

typedef struct option {
    const char *name;     /* without the dashes */
    const char *argument; /* what the help calls the value; NULL for a flag */
    const char *help;
    option_kind kind;
    size_t target; /* offset in the command's values */
    int32_t minimum;
    int32_t maximum;
    const char *const *choices; /* ends with NULL */
} option;

typedef struct command {
    const char *name;
    const char *summary; /* one line, for the list of commands */
    const char *usage;   /* what comes after the name */
    const char *notes;   /* a paragraph for the help */
    const char *example; /* a real command line and what it does */
    const option *options;
    size_t option_count;
    const char *operands[2];    /* what the help calls the required operands; NULL: none is taken */
    size_t operand_targets[2];  /* const char *: offsets in the values */
    const char *operand_list;   /* or: what it calls each of any number, 0 too, of operands */
    size_t operand_list_target; /* text_list: offset in the values */
    bool lists_formats;         /* the help ends with the file formats */
} command;

/*
 * Fills `values`, which holds the defaults, from the arguments after the sub-command's name. False:
 * the command ends here with *exit_code, after its help or a usage error. In either case the values
 * are to be given to options_release.
 */
bool options_parse(const command *self, int argc, char **argv, void *values, int *exit_code);

/* Frees the lists in `values`. */
void options_release(const command *self, void *values);

/* Writes the help text. */
void options_help(const command *self, FILE *out);

#endif
