/* SPDX-License-Identifier: MIT */
#include "format/step_list.h"

#include "base/memory.h"

/* Moves the item at `root` down to its place in a heap with the largest step on top. */
static void sift(eplb_step_tokens *items, size_t root, size_t count)
{
    eplb_step_tokens item = items[root];
    size_t child;
    while ((child = 2 * root + 1) < count) {
        child += child + 1 < count && items[child + 1].step > items[child].step ? 1 : 0;
        if (items[child].step <= item.step) {
            break;
        }
        items[root] = items[child];
        root = child;
    }
    items[root] = item;
}

/* A heap sort of its own: qsort may allocate, and its order of equal steps, in which their tokens
 * are summed, is its own affair. */
static void heap_sort(eplb_step_tokens *items, size_t count)
{
    for (size_t root = count / 2; root-- > 0;) {
        sift(items, root, count);
    }
    for (size_t end = count; end-- > 1;) {
        eplb_step_tokens largest = items[0];
        items[0] = items[end];
        items[end] = largest;
        sift(items, 0, end);
    }
}

static bool is_sorted(const eplb_step_list *list)
{
    for (size_t i = 1; i < list->count; i++) {
        if (list->items[i - 1].step >= list->items[i].step) {
            return false;
        }
    }
    return true;
}

void eplb_step_list_sort(eplb_step_list *list)
{
    if (is_sorted(list)) {
        return;
    }
    heap_sort(list->items, list->count);
    size_t last = 0;
    for (size_t i = 1; i < list->count; i++) {
        if (list->items[i].step == list->items[last].step) {
            list->items[last].tokens += list->items[i].tokens;
        } else {
            list->items[++last] = list->items[i];
        }
    }
    list->count = last + 1;
}

/* Room for one more. A list that is full of repeated steps is made short before it grows. */
static bool make_room(eplb_step_list *list)
{
    if (list->count < list->capacity) {
        return true;
    }
    eplb_step_list_sort(list);
    if (list->count < list->capacity / 2) {
        return true;
    }
    size_t capacity;
    if (!eplb_size_mul(list->capacity > 0 ? list->capacity : 32, 2, &capacity)) {
        return false;
    }
    eplb_step_tokens *items = eplb_realloc(&list->hooks, list->items, capacity, sizeof(*items));
    if (items == NULL) {
        return false;
    }
    list->items = items;
    list->capacity = capacity;
    return true;
}

eplb_status eplb_step_list_add(eplb_step_list *list, const eplb_counts_row *row, eplb_error *error)
{
    double tokens = 0.0;
    for (int32_t e = 0; e < row->length; e++) {
        tokens += row->counts[e];
    }
    if (list->count > 0 && list->items[list->count - 1].step == row->step) {
        list->items[list->count - 1].tokens += tokens;
        return EPLB_OK;
    }
    if (!make_room(list)) {
        return eplb_out_of_memory(error);
    }
    list->items[list->count++] = (eplb_step_tokens){.step = row->step, .tokens = tokens};
    return EPLB_OK;
}

size_t eplb_step_list_difference(const eplb_step_list *a, const eplb_step_list *b)
{
    size_t shorter = a->count < b->count ? a->count : b->count;
    for (size_t i = 0; i < shorter; i++) {
        if (a->items[i].step != b->items[i].step) {
            return i;
        }
    }
    return a->count == b->count ? SIZE_MAX : shorter;
}

void eplb_step_list_clear(eplb_step_list *list)
{
    eplb_free(&list->hooks, list->items);
    list->items = NULL;
    list->count = list->capacity = 0;
}
