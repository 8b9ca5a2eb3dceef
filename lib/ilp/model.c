/* SPDX-License-Identifier: MIT */
#include "ilp/model.h"

#include "base/memory.h"

#define FIRST_CAPACITY 64

void eplb_ilp_model_init(eplb_ilp_model *model, const eplb_hooks *hooks)
{
    *model = (eplb_ilp_model){.hooks = *hooks};
}

void eplb_ilp_model_free(eplb_ilp_model *model)
{
    eplb_free(&model->hooks, model->columns);
    eplb_free(&model->hooks, model->rows);
    eplb_free(&model->hooks, model->entries);
    eplb_hooks hooks = model->hooks;
    eplb_ilp_model_init(model, &hooks);
}

void eplb_ilp_model_clear(eplb_ilp_model *model)
{
    model->column_count = 0;
    model->row_count = 0;
    model->entry_count = 0;
    model->out_of_memory = false;
}

/* Makes room for one more item of an array; false without memory. */
static bool make_room(eplb_ilp_model *model, void **items, int32_t count, int32_t *capacity,
                      size_t size)
{
    if (model->out_of_memory) {
        return false;
    }
    if (count < *capacity) {
        return true;
    }
    int64_t wanted = *capacity > 0 ? 2 * (int64_t)*capacity : FIRST_CAPACITY;
    void *larger =
        wanted <= INT32_MAX ? eplb_realloc(&model->hooks, *items, (size_t)wanted, size) : NULL;
    if (larger == NULL) {
        model->out_of_memory = true;
        return false;
    }
    *items = larger;
    *capacity = (int32_t)wanted;
    return true;
}

static int32_t add_column(eplb_ilp_model *model, eplb_ilp_column column)
{
    void *items = model->columns;
    if (!make_room(model, &items, model->column_count, &model->column_capacity, sizeof(column))) {
        return 0;
    }
    model->columns = items;
    model->columns[model->column_count] = column;
    return model->column_count++;
}

int32_t eplb_ilp_add_column(eplb_ilp_model *model, double lower, double upper, double cost)
{
    return add_column(model, (eplb_ilp_column){.lower = lower, .upper = upper, .cost = cost});
}

int32_t eplb_ilp_add_binary(eplb_ilp_model *model, double cost)
{
    return add_column(
        model, (eplb_ilp_column){.lower = 0.0, .upper = 1.0, .cost = cost, .is_integer = true});
}

int32_t eplb_ilp_add_row(eplb_ilp_model *model, double lower, double upper)
{
    void *items = model->rows;
    if (!make_room(model, &items, model->row_count, &model->row_capacity, sizeof(*model->rows))) {
        return 0;
    }
    model->rows = items;
    model->rows[model->row_count] = (eplb_ilp_row){.lower = lower, .upper = upper};
    return model->row_count++;
}

void eplb_ilp_add_entry(eplb_ilp_model *model, int32_t row, int32_t column, double value)
{
    void *items = model->entries;
    if (!make_room(model, &items, model->entry_count, &model->entry_capacity,
                   sizeof(*model->entries))) {
        return;
    }
    model->entries = items;
    model->entries[model->entry_count++] =
        (eplb_ilp_entry){.row = row, .column = column, .value = value};
}

eplb_status eplb_ilp_model_status(const eplb_ilp_model *model, eplb_error *error)
{
    return model->out_of_memory ? eplb_out_of_memory(error) : EPLB_OK;
}
