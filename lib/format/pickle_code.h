/* SPDX-License-Identifier: MIT */
/* The opcodes of a pickle: those that torch.save writes for dictionaries of numbers, texts and
 * tensors, and no others. A pickle is a program, so what is not known is refused. */
#ifndef EPLB_FORMAT_PICKLE_CODE_H
#define EPLB_FORMAT_PICKLE_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <eplb/status.h>

/* By the names of Python's pickletools. */
typedef enum eplb_pickle_opcode {
    EPLB_PICKLE_MARK = '(',
    EPLB_PICKLE_EMPTY_TUPLE = ')',
    EPLB_PICKLE_STOP = '.',
    EPLB_PICKLE_BINFLOAT = 'G',
    EPLB_PICKLE_BININT = 'J',
    EPLB_PICKLE_BININT1 = 'K',
    EPLB_PICKLE_BININT2 = 'M',
    EPLB_PICKLE_NONE = 'N',
    EPLB_PICKLE_BINPERSID = 'Q',
    EPLB_PICKLE_REDUCE = 'R',
    EPLB_PICKLE_BINUNICODE = 'X',
    EPLB_PICKLE_EMPTY_LIST = ']',
    EPLB_PICKLE_APPEND = 'a',
    EPLB_PICKLE_GLOBAL = 'c',
    EPLB_PICKLE_APPENDS = 'e',
    EPLB_PICKLE_BINGET = 'h',
    EPLB_PICKLE_LONG_BINGET = 'j',
    EPLB_PICKLE_BINPUT = 'q',
    EPLB_PICKLE_LONG_BINPUT = 'r',
    EPLB_PICKLE_SETITEM = 's',
    EPLB_PICKLE_TUPLE = 't',
    EPLB_PICKLE_SETITEMS = 'u',
    EPLB_PICKLE_EMPTY_DICT = '}',
    EPLB_PICKLE_PROTO = 0x80,
    EPLB_PICKLE_TUPLE1 = 0x85,
    EPLB_PICKLE_TUPLE2 = 0x86,
    EPLB_PICKLE_TUPLE3 = 0x87,
    EPLB_PICKLE_NEWTRUE = 0x88,
    EPLB_PICKLE_NEWFALSE = 0x89,
    EPLB_PICKLE_LONG1 = 0x8a,
} eplb_pickle_opcode;

typedef struct eplb_pickle_code {
    const char *name; /* of the file and its entry, for messages */
    const char *bytes;
    size_t size;
    size_t next; /* the next opcode */
} eplb_pickle_code;

typedef struct eplb_pickle_op {
    eplb_pickle_opcode opcode;
    size_t place;    /* of the opcode, in bytes */
    int64_t integer; /* its argument, as the opcode has one */
    double real;
    const char *text; /* of a global: module, newline, name; not terminated */
    uint32_t length;
} eplb_pickle_op;

/* What a pickle makes, so that the memory for it is known before it runs. */
typedef struct eplb_pickle_totals {
    size_t values;
    size_t pushes;       /* values, and those that are fetched again */
    size_t memo_entries; /* one more than the largest number that something is kept under */
} eplb_pickle_totals;

/* Reads an opcode and its argument. EPLB_ERROR_PARSE when the bytes end within it,
 * EPLB_ERROR_UNSUPPORTED for one that is not known. */
eplb_status eplb_pickle_next_op(eplb_pickle_code *code, eplb_pickle_op *op, eplb_error *error);

/* Reads all opcodes up to the last byte, which must be STOP, and goes back to the first. */
eplb_status eplb_pickle_survey(eplb_pickle_code *code, eplb_pickle_totals *totals,
                               eplb_error *error);

#endif
