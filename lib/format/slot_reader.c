/* SPDX-License-Identifier: MIT */
#include "format/slot_reader.h"

#include "base/memory.h"

eplb_status eplb_slot_reader_start(eplb_slot_reader *self, eplb_reading *reading, eplb_error *error)
{
    reading->is_folded = true;
    eplb_status status = eplb_scanner_init(&self->scanner, &reading->input, error);
    self->scanner.item = "slot";
    return status == EPLB_OK ? eplb_input_skip_bom(&reading->input, error) : status;
}

void eplb_slot_reader_clear(eplb_slot_reader *self, const eplb_hooks *hooks)
{
    eplb_scanner_close(&self->scanner);
    eplb_slot_step_clear(&self->step, hooks);
}

eplb_status eplb_slot_reader_next(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    eplb_slot_reader *self = reading->state;
    eplb_status status = EPLB_OK;
    if (!eplb_slot_step_has_row(&self->step)) {
        status = self->next_step(self, reading, error);
    }
    return status == EPLB_OK ? eplb_slot_step_next(&self->step, &self->scanner, row, error)
                             : status;
}

void eplb_slot_reader_close(eplb_reading *reading)
{
    eplb_slot_reader *self = reading->state;
    if (self != NULL) {
        eplb_slot_reader_clear(self, &reading->hooks);
        eplb_free(&reading->hooks, self);
    }
}

eplb_status eplb_slot_reader_map(eplb_slot_reader *self, const eplb_reading *reading, eplb_map *map,
                                 eplb_error *error)
{
    eplb_status status;
    do {
        status = self->next_step(self, reading, error);
    } while (status == EPLB_OK);
    if (status != EPLB_END) {
        return status;
    }
    map->gpus = (int32_t)self->gpus;
    return eplb_slot_step_copy_map(&self->step, &reading->options, map, error);
}
