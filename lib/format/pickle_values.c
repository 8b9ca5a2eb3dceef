/* SPDX-License-Identifier: MIT */
/* Looking at what a pickle made. Nothing here follows items of items: a value may contain itself.
 */
#include <string.h>

#include "format/pickle.h"

static const eplb_pickle_cell *cell_at(const eplb_pickle *pickle, uint32_t cell)
{
    return cell != 0 ? &pickle->cells[cell] : NULL;
}

const eplb_pickle_cell *eplb_pickle_first(const eplb_pickle *pickle, const eplb_pickle_value *value)
{
    return value->kind == EPLB_PICKLED_TUPLE || value->kind == EPLB_PICKLED_LIST ||
                   value->kind == EPLB_PICKLED_DICTIONARY || value->kind == EPLB_PICKLED_STORAGE ||
                   value->kind == EPLB_PICKLED_TENSOR
               ? cell_at(pickle, value->as.items.first)
               : NULL;
}

const eplb_pickle_cell *eplb_pickle_following(const eplb_pickle *pickle,
                                              const eplb_pickle_cell *cell)
{
    return cell_at(pickle, cell->next);
}

const eplb_pickle_value *eplb_pickle_item(const eplb_pickle *pickle, const eplb_pickle_cell *cell)
{
    return &pickle->values[cell->value];
}

bool eplb_pickle_text_is(const eplb_pickle_value *value, const char *text)
{
    return (value->kind == EPLB_PICKLED_TEXT || value->kind == EPLB_PICKLED_STORAGE_TYPE) &&
           value->length == strlen(text) && memcmp(value->as.text, text, value->length) == 0;
}

int32_t eplb_pickle_find(const eplb_pickle *pickle, const eplb_pickle_value *dictionary,
                         const char *key, const eplb_pickle_value **value)
{
    int32_t found = 0;
    *value = NULL;
    const eplb_pickle_cell *cell =
        dictionary->kind == EPLB_PICKLED_DICTIONARY ? eplb_pickle_first(pickle, dictionary) : NULL;
    while (cell != NULL) {
        bool is_key = eplb_pickle_text_is(eplb_pickle_item(pickle, cell), key);
        cell = eplb_pickle_following(pickle, cell);
        if (is_key) {
            *value = eplb_pickle_item(pickle, cell);
            found++;
        }
        cell = eplb_pickle_following(pickle, cell);
    }
    return found;
}
