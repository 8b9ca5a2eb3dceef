/* SPDX-License-Identifier: MIT */
#include "format/pickle.h"

#include "base/memory.h"
#include "format/pickle_code.h"
#include "format/quote.h"

/* torch.save has some 2000 values on its stack at most: it writes lists in parts of 1000. */
#define STACK_SIZE ((size_t)65536)

#define MARK 0u     /* on the stack, where a value would be */
#define NO_ENTRY 0u /* in the memo */

typedef struct machine {
    eplb_pickle *pickle;
    eplb_pickle_code code;
    eplb_pickle_op op; /* the one that runs */
    eplb_pickle_totals totals;
    uint32_t values; /* made so far, the unused one with them */
    uint32_t cells;
    uint32_t *stack; /* [STACK_SIZE] */
    size_t depth;
    uint32_t *memo; /* [totals.memo_entries] */
} machine;

static eplb_status fail(const machine *self, eplb_status status, const char *what,
                        eplb_error *error)
{
    return eplb_error_set(error, status, "%s: byte %zu: opcode 0x%02x: %s", self->code.name,
                          self->op.place, (unsigned)self->op.opcode, what);
}

static eplb_pickle_value *value_at(const machine *self, uint32_t index)
{
    return &self->pickle->values[index];
}

static eplb_status push(machine *self, uint32_t index, eplb_error *error)
{
    if (self->depth == STACK_SIZE) {
        return fail(self, EPLB_ERROR_LIMIT, "more than 65536 values on the stack", error);
    }
    self->stack[self->depth++] = index;
    return EPLB_OK;
}

static eplb_status push_value(machine *self, eplb_pickle_value value, eplb_error *error)
{
    *value_at(self, self->values) = value;
    return push(self, self->values++, error);
}

/* Whether the top `count` of the stack are values. */
static bool has_values(const machine *self, size_t count)
{
    bool enough = self->depth >= count;
    for (size_t i = 0; enough && i < count; i++) {
        enough = self->stack[self->depth - 1 - i] != MARK;
    }
    return enough;
}

/* Where the values behind the last mark begin; 0: there is no mark. */
static size_t find_mark(const machine *self)
{
    size_t start = self->depth;
    while (start > 0 && self->stack[start - 1] != MARK) {
        start--;
    }
    return start;
}

static void append_item(machine *self, eplb_pickle_value *owner, uint32_t index)
{
    uint32_t cell = self->cells++;
    self->pickle->cells[cell] = (eplb_pickle_cell){.value = index};
    if (owner->as.items.first == 0) {
        owner->as.items.first = cell;
    } else {
        self->pickle->cells[owner->as.items.last].next = cell;
    }
    owner->as.items.last = cell;
    owner->length++;
}

/* Moves the values from `start` to the top of the stack into `owner`. */
static void take_items(machine *self, size_t start, eplb_pickle_value *owner)
{
    for (size_t i = start; i < self->depth; i++) {
        append_item(self, owner, self->stack[i]);
    }
    self->depth = start;
}

static eplb_status make_tuple(machine *self, size_t start, eplb_error *error)
{
    eplb_pickle_value tuple = {.kind = EPLB_PICKLED_TUPLE};
    take_items(self, start, &tuple);
    return push_value(self, tuple, error);
}

static eplb_status make_marked_tuple(machine *self, eplb_error *error)
{
    size_t start = find_mark(self);
    if (start == 0) {
        return fail(self, EPLB_ERROR_PARSE, "no mark on the stack", error);
    }
    eplb_pickle_value tuple = {.kind = EPLB_PICKLED_TUPLE};
    take_items(self, start, &tuple);
    self->depth--;
    return push_value(self, tuple, error);
}

static eplb_status make_short_tuple(machine *self, size_t count, eplb_error *error)
{
    return has_values(self, count)
               ? make_tuple(self, self->depth - count, error)
               : fail(self, EPLB_ERROR_PARSE, "too few values on the stack", error);
}

/* Moves the values from `start` on into the list or dictionary at `owner` on the stack. */
static eplb_status add_items(machine *self, size_t owner, size_t start, eplb_pickle_kind kind,
                             eplb_error *error)
{
    eplb_pickle_value *value = value_at(self, self->stack[owner]);
    if (self->stack[owner] == MARK || value->kind != (uint32_t)kind) {
        return fail(self, EPLB_ERROR_PARSE,
                    kind == EPLB_PICKLED_LIST ? "appends to what is no list"
                                              : "sets items of what is no dictionary",
                    error);
    }
    if (kind == EPLB_PICKLED_DICTIONARY && (self->depth - start) % 2 != 0) {
        return fail(self, EPLB_ERROR_PARSE, "a key without a value", error);
    }
    take_items(self, start, value);
    self->depth = owner + 1;
    return EPLB_OK;
}

static eplb_status add_marked_items(machine *self, eplb_pickle_kind kind, eplb_error *error)
{
    size_t start = find_mark(self);
    return start >= 2
               ? add_items(self, start - 2, start, kind, error)
               : fail(self, EPLB_ERROR_PARSE, "no mark on the stack, or nothing below it", error);
}

static eplb_status add_last_items(machine *self, size_t count, eplb_pickle_kind kind,
                                  eplb_error *error)
{
    return has_values(self, count + 1)
               ? add_items(self, self->depth - count - 1, self->depth - count, kind, error)
               : fail(self, EPLB_ERROR_PARSE, "too few values on the stack", error);
}

static eplb_status remember(machine *self, eplb_error *error)
{
    if (!has_values(self, 1)) {
        return fail(self, EPLB_ERROR_PARSE, "no value on the stack", error);
    }
    self->memo[self->op.integer] = self->stack[self->depth - 1];
    return EPLB_OK;
}

static eplb_status recall(machine *self, eplb_error *error)
{
    uint64_t entry = (uint64_t)self->op.integer;
    if (entry >= self->totals.memo_entries || self->memo[entry] == NO_ENTRY) {
        return eplb_error_set(error, EPLB_ERROR_PARSE, "%s: byte %zu: memo entry %llu was not set",
                              self->code.name, self->op.place, (unsigned long long)entry);
    }
    return push(self, self->memo[entry], error);
}

static bool begins_and_ends(const char *text, size_t length, const char *start, const char *end)
{
    size_t head = strlen(start);
    size_t tail = strlen(end);
    return length >= head + tail && memcmp(text, start, head) == 0 &&
           memcmp(text + length - tail, end, tail) == 0;
}

/* The names that such files need; any other could be a function with effects. */
static eplb_status make_global(machine *self, eplb_error *error)
{
    static const char storages[] = "torch\n";
    const char *text = self->op.text;
    uint32_t length = self->op.length;
    eplb_pickle_value value = {.kind = EPLB_PICKLED_TEXT, .length = length, .as.text = text};
    if (eplb_pickle_text_is(&value, "torch._utils\n_rebuild_tensor_v2")) {
        value.kind = EPLB_PICKLED_REBUILD_TENSOR;
    } else if (eplb_pickle_text_is(&value, "collections\nOrderedDict")) {
        value.kind = EPLB_PICKLED_ORDERED_DICT;
    } else if (begins_and_ends(text, length, storages, "Storage")) {
        value.kind = EPLB_PICKLED_STORAGE_TYPE;
        value.as.text += sizeof(storages) - 1;
        value.length -= (uint32_t)sizeof(storages) - 1;
    } else {
        size_t module = (size_t)((const char *)memchr(text, '\n', length) - text);
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s: byte %zu: global %s.%s is not one that counts need: refused",
                              self->code.name, self->op.place, eplb_quote_bytes(text, module).text,
                              eplb_quote_bytes(text + module + 1, length - module - 1).text);
    }
    return push_value(self, value, error);
}

/* What a call makes of a tuple of arguments: of the two functions that are known. */
static eplb_status make_call(machine *self, eplb_error *error)
{
    if (!has_values(self, 2)) {
        return fail(self, EPLB_ERROR_PARSE, "too few values on the stack", error);
    }
    eplb_pickle_value result = *value_at(self, self->stack[self->depth - 1]);
    uint32_t callable = value_at(self, self->stack[self->depth - 2])->kind;
    if (result.kind != EPLB_PICKLED_TUPLE) {
        return fail(self, EPLB_ERROR_PARSE, "calls with what is no tuple of arguments", error);
    }
    if (callable == EPLB_PICKLED_REBUILD_TENSOR) {
        result.kind = EPLB_PICKLED_TENSOR;
    } else if (callable == EPLB_PICKLED_ORDERED_DICT && result.length == 0) {
        result.kind = EPLB_PICKLED_DICTIONARY;
    } else {
        return fail(self, EPLB_ERROR_UNSUPPORTED,
                    "calls something else than _rebuild_tensor_v2, or OrderedDict without "
                    "arguments: refused",
                    error);
    }
    self->depth -= 2;
    return push_value(self, result, error);
}

static eplb_status make_storage(machine *self, eplb_error *error)
{
    eplb_pickle_value storage = {.kind = EPLB_PICKLED_NONE};
    if (has_values(self, 1)) {
        storage = *value_at(self, self->stack[self->depth - 1]);
    }
    if (storage.kind != EPLB_PICKLED_TUPLE) {
        return fail(self, EPLB_ERROR_PARSE, "a storage that is not described by a tuple", error);
    }
    storage.kind = EPLB_PICKLED_STORAGE;
    self->depth--;
    return push_value(self, storage, error);
}

static eplb_status make_scalar(machine *self, eplb_pickle_kind kind, eplb_error *error)
{
    const eplb_pickle_op *op = &self->op;
    eplb_pickle_value value = {.kind = (uint32_t)kind};
    if (kind == EPLB_PICKLED_INTEGER) {
        value.as.integer = op->integer;
    } else if (kind == EPLB_PICKLED_BOOL) {
        value.as.integer = op->opcode == EPLB_PICKLE_NEWTRUE;
    } else if (kind == EPLB_PICKLED_REAL) {
        value.as.real = op->real;
    } else if (kind == EPLB_PICKLED_TEXT) {
        value.as.text = op->text;
        value.length = op->length;
    }
    return push_value(self, value, error);
}

static eplb_status run_op(machine *self, eplb_error *error)
{
    switch (self->op.opcode) {
    case EPLB_PICKLE_PROTO:
    case EPLB_PICKLE_STOP:
        return EPLB_OK;
    case EPLB_PICKLE_MARK:
        return push(self, MARK, error);
    case EPLB_PICKLE_NONE:
        return make_scalar(self, EPLB_PICKLED_NONE, error);
    case EPLB_PICKLE_NEWTRUE:
    case EPLB_PICKLE_NEWFALSE:
        return make_scalar(self, EPLB_PICKLED_BOOL, error);
    case EPLB_PICKLE_BININT:
    case EPLB_PICKLE_BININT1:
    case EPLB_PICKLE_BININT2:
    case EPLB_PICKLE_LONG1:
        return make_scalar(self, EPLB_PICKLED_INTEGER, error);
    case EPLB_PICKLE_BINFLOAT:
        return make_scalar(self, EPLB_PICKLED_REAL, error);
    case EPLB_PICKLE_BINUNICODE:
        return make_scalar(self, EPLB_PICKLED_TEXT, error);
    case EPLB_PICKLE_EMPTY_LIST:
        return make_scalar(self, EPLB_PICKLED_LIST, error);
    case EPLB_PICKLE_EMPTY_DICT:
        return make_scalar(self, EPLB_PICKLED_DICTIONARY, error);
    case EPLB_PICKLE_EMPTY_TUPLE:
        return make_scalar(self, EPLB_PICKLED_TUPLE, error);
    case EPLB_PICKLE_TUPLE:
        return make_marked_tuple(self, error);
    case EPLB_PICKLE_TUPLE1:
    case EPLB_PICKLE_TUPLE2:
    case EPLB_PICKLE_TUPLE3:
        return make_short_tuple(self, (size_t)self->op.opcode - EPLB_PICKLE_TUPLE1 + 1, error);
    case EPLB_PICKLE_APPEND:
        return add_last_items(self, 1, EPLB_PICKLED_LIST, error);
    case EPLB_PICKLE_APPENDS:
        return add_marked_items(self, EPLB_PICKLED_LIST, error);
    case EPLB_PICKLE_SETITEM:
        return add_last_items(self, 2, EPLB_PICKLED_DICTIONARY, error);
    case EPLB_PICKLE_SETITEMS:
        return add_marked_items(self, EPLB_PICKLED_DICTIONARY, error);
    case EPLB_PICKLE_BINPUT:
    case EPLB_PICKLE_LONG_BINPUT:
        return remember(self, error);
    case EPLB_PICKLE_BINGET:
    case EPLB_PICKLE_LONG_BINGET:
        return recall(self, error);
    case EPLB_PICKLE_GLOBAL:
        return make_global(self, error);
    case EPLB_PICKLE_REDUCE:
        return make_call(self, error);
    case EPLB_PICKLE_BINPERSID:
        return make_storage(self, error);
    }
    return fail(self, EPLB_ERROR_UNSUPPORTED, "not known", error);
}

static eplb_status run(machine *self, eplb_error *error)
{
    eplb_status status;
    do {
        status = eplb_pickle_next_op(&self->code, &self->op, error);
        if (status == EPLB_OK) {
            status = run_op(self, error);
        }
    } while (status == EPLB_OK && self->op.opcode != EPLB_PICKLE_STOP);
    if (status == EPLB_OK && (self->depth != 1 || self->stack[0] == MARK)) {
        return fail(self, EPLB_ERROR_PARSE, "not one value is left on the stack", error);
    }
    self->pickle->root = value_at(self, self->stack[0]);
    return status;
}

/* Of the densest opcodes a byte makes 24 bytes of values; such files are not written by torch. */
static eplb_status check_memory(const machine *self, eplb_error *error)
{
    size_t needed = self->totals.values * sizeof(eplb_pickle_value) +
                    self->totals.pushes * sizeof(eplb_pickle_cell) +
                    self->totals.memo_entries * sizeof(*self->memo);
    return needed / 15 <= self->code.size + (1u << 14)
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_LIMIT,
                                "%s: %zu values in %zu bytes: more than counts need",
                                self->code.name, self->totals.values, self->code.size);
}

static eplb_status alloc_and_run(machine *self, eplb_error *error)
{
    const eplb_hooks *hooks = &self->pickle->hooks;
    const eplb_array arrays[] = {
        EPLB_ARRAY(self->pickle->values, self->totals.values + 1),
        EPLB_ARRAY(self->pickle->cells, self->totals.pushes + 1),
        EPLB_ARRAY(self->memo, self->totals.memo_entries),
        EPLB_ARRAY(self->stack, STACK_SIZE),
    };
    eplb_status status =
        eplb_alloc_arrays(hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
    if (status == EPLB_OK) {
        status = run(self, error);
    }
    eplb_free(hooks, self->memo);
    eplb_free(hooks, self->stack);
    return status;
}

eplb_status eplb_pickle_run(eplb_pickle *pickle, const eplb_hooks *hooks, const char *name,
                            const char *bytes, size_t size, eplb_error *error)
{
    *pickle = (eplb_pickle){.hooks = *hooks};
    machine self = {.pickle = pickle,
                    .code = {.name = name, .bytes = bytes, .size = size},
                    .values = 1,
                    .cells = 1};
    eplb_status status = eplb_pickle_survey(&self.code, &self.totals, error);
    if (status == EPLB_OK) {
        status = check_memory(&self, error);
    }
    if (status == EPLB_OK) {
        status = alloc_and_run(&self, error);
    }
    if (status != EPLB_OK) {
        eplb_pickle_clear(pickle);
    }
    return status;
}

void eplb_pickle_clear(eplb_pickle *pickle)
{
    eplb_free(&pickle->hooks, pickle->values);
    eplb_free(&pickle->hooks, pickle->cells);
    pickle->values = NULL;
    pickle->cells = NULL;
    pickle->root = NULL;
}
