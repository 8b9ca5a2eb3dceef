/* SPDX-License-Identifier: MIT */
#include "format/pickle_code.h"

#include <string.h>

#include "format/item.h"

#define PROTOCOL 2

/* What follows an opcode. */
typedef enum argument {
    NOTHING,
    UNSIGNED_1,
    UNSIGNED_2,
    UNSIGNED_4,
    SIGNED_4,
    LONG,   /* a byte that says how many follow */
    DOUBLE, /* big-endian */
    TEXT,   /* four bytes that say how many follow */
    LINES,  /* two lines */
} argument;

/* What an opcode leaves on the stack. */
typedef enum effect {
    UNKNOWN = 0, /* the opcode is none of these */
    NO_VALUE,
    OLD_VALUE,
    NEW_VALUE,
    KEEPS, /* in the memo */
} effect;

static const struct known_op {
    argument follows;
    effect leaves;
} known_ops[256] = {
    [EPLB_PICKLE_MARK] = {NOTHING, NO_VALUE},
    [EPLB_PICKLE_EMPTY_TUPLE] = {NOTHING, NEW_VALUE},
    [EPLB_PICKLE_STOP] = {NOTHING, NO_VALUE},
    [EPLB_PICKLE_BINFLOAT] = {DOUBLE, NEW_VALUE},
    [EPLB_PICKLE_BININT] = {SIGNED_4, NEW_VALUE},
    [EPLB_PICKLE_BININT1] = {UNSIGNED_1, NEW_VALUE},
    [EPLB_PICKLE_BININT2] = {UNSIGNED_2, NEW_VALUE},
    [EPLB_PICKLE_NONE] = {NOTHING, NEW_VALUE},
    [EPLB_PICKLE_BINPERSID] = {NOTHING, NEW_VALUE},
    [EPLB_PICKLE_REDUCE] = {NOTHING, NEW_VALUE},
    [EPLB_PICKLE_BINUNICODE] = {TEXT, NEW_VALUE},
    [EPLB_PICKLE_EMPTY_LIST] = {NOTHING, NEW_VALUE},
    [EPLB_PICKLE_APPEND] = {NOTHING, NO_VALUE},
    [EPLB_PICKLE_GLOBAL] = {LINES, NEW_VALUE},
    [EPLB_PICKLE_APPENDS] = {NOTHING, NO_VALUE},
    [EPLB_PICKLE_BINGET] = {UNSIGNED_1, OLD_VALUE},
    [EPLB_PICKLE_LONG_BINGET] = {UNSIGNED_4, OLD_VALUE},
    [EPLB_PICKLE_BINPUT] = {UNSIGNED_1, KEEPS},
    [EPLB_PICKLE_LONG_BINPUT] = {UNSIGNED_4, KEEPS},
    [EPLB_PICKLE_SETITEM] = {NOTHING, NO_VALUE},
    [EPLB_PICKLE_TUPLE] = {NOTHING, NEW_VALUE},
    [EPLB_PICKLE_SETITEMS] = {NOTHING, NO_VALUE},
    [EPLB_PICKLE_EMPTY_DICT] = {NOTHING, NEW_VALUE},
    [EPLB_PICKLE_PROTO] = {UNSIGNED_1, NO_VALUE},
    [EPLB_PICKLE_TUPLE1] = {NOTHING, NEW_VALUE},
    [EPLB_PICKLE_TUPLE2] = {NOTHING, NEW_VALUE},
    [EPLB_PICKLE_TUPLE3] = {NOTHING, NEW_VALUE},
    [EPLB_PICKLE_NEWTRUE] = {NOTHING, NEW_VALUE},
    [EPLB_PICKLE_NEWFALSE] = {NOTHING, NEW_VALUE},
    [EPLB_PICKLE_LONG1] = {LONG, NEW_VALUE},
};

static eplb_status ends_early(const eplb_pickle_code *code, size_t place, eplb_error *error)
{
    return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: byte %zu: ends within an opcode",
                          code->name, place);
}

/* The next `size` bytes; NULL when there are fewer. */
static const char *take(eplb_pickle_code *code, size_t size)
{
    if (size > code->size - code->next) {
        return NULL;
    }
    code->next += size;
    return code->bytes + (code->next - size);
}

static bool take_unsigned(eplb_pickle_code *code, size_t size, int64_t *value)
{
    const char *bytes = take(code, size);
    *value = bytes != NULL ? (int64_t)eplb_item_bits(bytes, size, false) : 0;
    return bytes != NULL;
}

/* A number of any number of bytes, little-endian in two's complement, of which 8 can be held. */
static eplb_status take_long(eplb_pickle_code *code, eplb_pickle_op *op, eplb_error *error)
{
    int64_t size;
    const char *bytes = take_unsigned(code, 1, &size) ? take(code, (size_t)size) : NULL;
    if (bytes == NULL) {
        return ends_early(code, op->place, error);
    }
    if (size > 8) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s: byte %zu: an integer of %lld bytes, at most 8 can be read",
                              code->name, op->place, (long long)size);
    }
    unsigned unused = 64 - 8 * (unsigned)size;
    uint64_t bits = eplb_item_bits(bytes, (size_t)size, false);
    op->integer = size > 0 ? (int64_t)(bits << unused) >> unused : 0;
    return EPLB_OK;
}

static bool take_line(eplb_pickle_code *code)
{
    const char *start = code->bytes + code->next;
    const char *newline = memchr(start, '\n', code->size - code->next);
    code->next += newline != NULL ? (size_t)(newline - start) + 1 : 0;
    return newline != NULL;
}

static bool take_lines(eplb_pickle_code *code, eplb_pickle_op *op)
{
    size_t start = code->next;
    op->text = code->bytes + start;
    bool found = take_line(code) && take_line(code);
    op->length = found ? (uint32_t)(code->next - start - 1) : 0;
    return found;
}

static bool take_text(eplb_pickle_code *code, eplb_pickle_op *op)
{
    int64_t length;
    op->text = take_unsigned(code, 4, &length) ? take(code, (size_t)length) : NULL;
    op->length = op->text != NULL ? (uint32_t)length : 0;
    return op->text != NULL;
}

static bool take_double(eplb_pickle_code *code, eplb_pickle_op *op)
{
    const char *bytes = take(code, sizeof(double));
    op->real = bytes != NULL
                   ? eplb_item_float(eplb_item_bits(bytes, sizeof(double), true), sizeof(double))
                   : 0.0;
    return bytes != NULL;
}

static eplb_status take_argument(eplb_pickle_code *code, argument kind, eplb_pickle_op *op,
                                 eplb_error *error)
{
    bool whole = true;
    switch (kind) {
    case NOTHING:
        break;
    case UNSIGNED_1:
        whole = take_unsigned(code, 1, &op->integer);
        break;
    case UNSIGNED_2:
        whole = take_unsigned(code, 2, &op->integer);
        break;
    case UNSIGNED_4:
        whole = take_unsigned(code, 4, &op->integer);
        break;
    case SIGNED_4:
        whole = take_unsigned(code, 4, &op->integer);
        op->integer = (int32_t)(uint32_t)op->integer;
        break;
    case LONG:
        return take_long(code, op, error);
    case DOUBLE:
        whole = take_double(code, op);
        break;
    case TEXT:
        whole = take_text(code, op);
        break;
    case LINES:
        whole = take_lines(code, op);
        break;
    }
    return whole ? EPLB_OK : ends_early(code, op->place, error);
}

/* The first opcode, and only it, says the protocol. */
static eplb_status check_protocol(const eplb_pickle_code *code, const eplb_pickle_op *op,
                                  eplb_error *error)
{
    if ((op->place == 0) != (op->opcode == EPLB_PICKLE_PROTO)) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: byte %zu: %s that says the protocol of the pickle", code->name,
                              op->place, op->place == 0 ? "no opcode" : "a second opcode");
    }
    if (op->opcode == EPLB_PICKLE_PROTO && op->integer != PROTOCOL) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s: byte 0: a pickle of protocol %lld, expected %d", code->name,
                              (long long)op->integer, PROTOCOL);
    }
    return EPLB_OK;
}

eplb_status eplb_pickle_next_op(eplb_pickle_code *code, eplb_pickle_op *op, eplb_error *error)
{
    *op = (eplb_pickle_op){.place = code->next};
    if (code->next == code->size) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: byte %zu: ends without STOP",
                              code->name, code->next);
    }
    unsigned char opcode = (unsigned char)code->bytes[code->next++];
    if (known_ops[opcode].leaves == UNKNOWN) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s: byte %zu: opcode 0x%02x is not one that counts need: refused",
                              code->name, op->place, opcode);
    }
    op->opcode = (eplb_pickle_opcode)opcode;
    eplb_status status = take_argument(code, known_ops[opcode].follows, op, error);
    return status == EPLB_OK ? check_protocol(code, op, error) : status;
}

/* Writers count what they keep, so numbers beyond the bytes of the pickle are not theirs. */
static eplb_status count_memo(const eplb_pickle_code *code, const eplb_pickle_op *op,
                              eplb_pickle_totals *totals, eplb_error *error)
{
    if ((uint64_t)op->integer >= code->size) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: byte %zu: memo entry %lld of a pickle of %zu bytes", code->name,
                              op->place, (long long)op->integer, code->size);
    }
    size_t entries = (size_t)op->integer + 1;
    totals->memo_entries = entries > totals->memo_entries ? entries : totals->memo_entries;
    return EPLB_OK;
}

eplb_status eplb_pickle_survey(eplb_pickle_code *code, eplb_pickle_totals *totals,
                               eplb_error *error)
{
    eplb_pickle_op op;
    *totals = (eplb_pickle_totals){0};
    do {
        eplb_status status = eplb_pickle_next_op(code, &op, error);
        effect leaves = status == EPLB_OK ? known_ops[op.opcode].leaves : UNKNOWN;
        if (leaves == KEEPS) {
            status = count_memo(code, &op, totals, error);
        }
        if (status != EPLB_OK) {
            return status;
        }
        totals->values += leaves == NEW_VALUE ? 1 : 0;
        totals->pushes += leaves == NEW_VALUE || leaves == OLD_VALUE ? 1 : 0;
    } while (op.opcode != EPLB_PICKLE_STOP);
    if (code->next != code->size) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: byte %zu: %zu bytes behind STOP",
                              code->name, code->next, code->size - code->next);
    }
    code->next = 0;
    return EPLB_OK;
}
