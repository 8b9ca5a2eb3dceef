/* SPDX-License-Identifier: MIT */
/*
 * What a pickle of torch.save makes: dictionaries, lists, numbers, texts and tensors, and nothing
 * else. It is run by a machine that knows no Python: names of functions are compared with the three
 * that are expected, and nothing is looked up or called.
 */
#ifndef EPLB_FORMAT_PICKLE_H
#define EPLB_FORMAT_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/status.h>

typedef enum eplb_pickle_kind {
    EPLB_PICKLED_NONE,
    EPLB_PICKLED_BOOL,
    EPLB_PICKLED_INTEGER,
    EPLB_PICKLED_REAL,
    EPLB_PICKLED_TEXT,
    EPLB_PICKLED_TUPLE,
    EPLB_PICKLED_LIST,
    EPLB_PICKLED_DICTIONARY,     /* items are key, value, key, value */
    EPLB_PICKLED_ORDERED_DICT,   /* the name collections.OrderedDict */
    EPLB_PICKLED_REBUILD_TENSOR, /* the name torch._utils._rebuild_tensor_v2 */
    EPLB_PICKLED_STORAGE_TYPE,   /* a name torch.*Storage; its text is that without "torch." */
    EPLB_PICKLED_STORAGE,        /* items are those of the tuple that describes it */
    EPLB_PICKLED_TENSOR,         /* items are the arguments of _rebuild_tensor_v2 */
} eplb_pickle_kind;

typedef struct eplb_pickle_value {
    uint32_t kind;   /* eplb_pickle_kind */
    uint32_t length; /* bytes, items */
    union {
        int64_t integer;
        double real;
        const char *text; /* in the bytes of the pickle, not terminated */
        struct {
            uint32_t first; /* of the cells; 0: none */
            uint32_t last;
        } items;
    } as;
} eplb_pickle_value;

/* An item in something that has items. */
typedef struct eplb_pickle_cell {
    uint32_t value;
    uint32_t next; /* 0: none */
} eplb_pickle_cell;

typedef struct eplb_pickle {
    eplb_hooks hooks;
    eplb_pickle_value *values; /* [0] is unused, as is cells[0] */
    eplb_pickle_cell *cells;
    const eplb_pickle_value *root;
} eplb_pickle;

/*
 * Runs a pickle of `size` bytes (at most INT32_MAX), which must outlive its values; `name` is that
 * of the file and its entry, for messages. Takes at most 15 times as much memory, and 512 KiB more.
 * EPLB_ERROR_UNSUPPORTED for opcodes and names that are not of such files. On failure nothing is
 * left to clear.
 */
eplb_status eplb_pickle_run(eplb_pickle *pickle, const eplb_hooks *hooks, const char *name,
                            const char *bytes, size_t size, eplb_error *error);
void eplb_pickle_clear(eplb_pickle *pickle);

/* The first item's cell (NULL: none), the one behind it, and what is in it. */
const eplb_pickle_cell *eplb_pickle_first(const eplb_pickle *pickle,
                                          const eplb_pickle_value *value);
const eplb_pickle_cell *eplb_pickle_following(const eplb_pickle *pickle,
                                              const eplb_pickle_cell *cell);
const eplb_pickle_value *eplb_pickle_item(const eplb_pickle *pickle, const eplb_pickle_cell *cell);

bool eplb_pickle_text_is(const eplb_pickle_value *value, const char *text);

/* How many keys of a dictionary are `key`, 0 for what is none; `value` is that of the last, or
 * NULL. Linear in its length. */
int32_t eplb_pickle_find(const eplb_pickle *pickle, const eplb_pickle_value *dictionary,
                         const char *key, const eplb_pickle_value **value);

#endif
