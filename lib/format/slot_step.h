/* SPDX-License-Identifier: MIT */
/* Counts of the slots of one step together with the map of the slots, as vLLM writes them: lists of
 * JSON, [layers][slots] each, in any order. They are held until both are there, and then handed out
 * as counts of logical experts. */
#ifndef EPLB_FORMAT_SLOT_STEP_H
#define EPLB_FORMAT_SLOT_STEP_H

#include "format/format.h"
#include "format/scanner.h"

/* A list as it lies in the file. */
typedef struct eplb_slot_matrix {
    double *values; /* [layers][slots] */
    size_t capacity;
    int32_t layers;
    int32_t slots;
} eplb_slot_matrix;

typedef struct eplb_slot_step {
    const char *counts_key;
    const char *map_key;
    bool map_only; /* counts are checked to be JSON, and not kept */
    bool has_step;
    bool has_counts;
    bool has_map;
    int64_t step;
    bool has_previous; /* a step came before: of this number */
    int64_t previous;
    eplb_slot_matrix counts;
    eplb_slot_matrix map;   /* experts, -1 for an empty slot */
    eplb_counts_buffer row; /* that is being read */
    int32_t layers;         /* of every step; 0 until one was read */
    int32_t experts;        /* logical ones, of every step; 0 until they are known */
    int32_t next_layer;     /* to be handed out */
    int32_t *slot_experts;  /* [map.slots] of that layer */
    double *folded;         /* [experts] of that layer */
} eplb_slot_step;

/* Before the members of a step. The map of the step before stays until another one is read. */
void eplb_slot_step_begin(eplb_slot_step *self, eplb_scanner *scanner);

/* Reads the value of a key that is `step` or one of the two lists; any other is skipped. */
eplb_status eplb_slot_step_member(eplb_slot_step *self, eplb_scanner *scanner,
                                  const eplb_reading *reading, const char *key, eplb_error *error);

/* Behind the members: makes sure that they are all there and fit each other and the steps before.
 * With map_only there is nothing to hand out then. */
eplb_status eplb_slot_step_end(eplb_slot_step *self, eplb_scanner *scanner,
                               const eplb_reading *reading, eplb_error *error);

/* Whether there is a row to hand out. */
bool eplb_slot_step_has_row(const eplb_slot_step *self);

/* Hands it out. */
eplb_status eplb_slot_step_next(eplb_slot_step *self, eplb_scanner *scanner, eplb_counts_row *row,
                                eplb_error *error);

/* The last map as a placement's. */
eplb_status eplb_slot_step_copy_map(const eplb_slot_step *self, const eplb_read_options *options,
                                    eplb_map *map, eplb_error *error);

void eplb_slot_step_clear(eplb_slot_step *self, const eplb_hooks *hooks);

#endif
