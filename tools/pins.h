/* SPDX-License-Identifier: MIT */
/* --pin LAYER:EXPERT:GPU: replicas that a plan must have. */
#ifndef EPLB_TOOLS_PINS_H
#define EPLB_TOOLS_PINS_H

#include <eplb/load.h>
#include <eplb/plan.h>

#include "options.h"

/* One pin as it is written: -1 stands for all. */
typedef struct pin_text {
    int32_t layer_id;
    int32_t expert;
    int32_t gpu;
} pin_text;

/* Reads "3:17:0", where LAYER and GPU may be "all". False: it is no pin. */
bool parse_pin(const char *text, pin_text *pin);

/* Makes the pins [texts->count] of a plan for the load, whose layer ids they name. `pins` is to be
 * freed; NULL when there are none. EPLB_ERROR_DATA: the load has no such layer or expert, or there
 * is no such GPU. */
eplb_status make_pins(eplb_pin **pins, const text_list *texts, const eplb_load *load, int32_t gpus,
                      eplb_error *error);

#endif
