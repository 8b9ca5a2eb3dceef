/* SPDX-License-Identifier: MIT */
/* What formats share whose files are steps of slot counts with their map: counts, and the last map
 * as a placement. */
#ifndef EPLB_FORMAT_SLOT_READER_H
#define EPLB_FORMAT_SLOT_READER_H

#include "format/slot_step.h"

typedef struct eplb_slot_reader eplb_slot_reader;

/* A format's own state begins with it, as zeros but for next_step and step's keys. */
struct eplb_slot_reader {
    /* Reads the next step into `step`; EPLB_END when there is none. */
    eplb_status (*next_step)(eplb_slot_reader *self, const eplb_reading *reading,
                             eplb_error *error);
    eplb_scanner scanner;
    eplb_slot_step step;
    int64_t gpus; /* that the slots are spread over, as the file says; 0: it does not */
};

/* Makes the scanner ready for the first byte of the document. */
eplb_status eplb_slot_reader_start(eplb_slot_reader *self, eplb_reading *reading,
                                   eplb_error *error);
void eplb_slot_reader_clear(eplb_slot_reader *self, const eplb_hooks *hooks);

/* For an eplb_format as they are: reading->state begins with an eplb_slot_reader. */
eplb_status eplb_slot_reader_next(eplb_reading *reading, eplb_counts_row *row, eplb_error *error);
void eplb_slot_reader_close(eplb_reading *reading);

/* Reads on to the last step and takes its map. */
eplb_status eplb_slot_reader_map(eplb_slot_reader *self, const eplb_reading *reading, eplb_map *map,
                                 eplb_error *error);

#endif
