/* SPDX-License-Identifier: MIT */
#include "counting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "current.h"
#include "formats.h"
#include "message.h"

#define REMEDY "if these are counts of slots, say under which placement: --counted-under FILE"

/* On as many GPUs as the file says, else on one: counts are folded by slots. */
static eplb_status read_on_any_gpus(eplb_placement **placement, const char *path, int32_t experts,
                                    const eplb_hooks *hooks, eplb_error *error)
{
    eplb_read_options reading = reading_options(NULL, experts);
    eplb_status status = eplb_placement_read(placement, hooks, path, &reading, NULL, error);
    if (status == EPLB_ERROR_ARGUMENT) {
        reading.gpus = 1;
        status = eplb_placement_read(placement, hooks, path, &reading, NULL, error);
    }
    return status;
}

int counting_check(const counting_values *values, const char *command_name)
{
    return values->counted_under != NULL && strcmp(values->counted_under, "-") == 0
               ? usage_error(command_name, "--counted-under -: give a file: it may be read twice")
               : EXIT_DONE;
}

eplb_status counting_open(eplb_placement **placement, const counting_values *values,
                          int32_t experts, const eplb_hooks *hooks, eplb_error *error)
{
    *placement = NULL;
    if (values->counted_under == NULL) {
        return EPLB_OK;
    }
    eplb_status status = read_on_any_gpus(placement, values->counted_under, experts, hooks, error);
    if (status == EPLB_OK) { /* an expert without a slot would lose its tokens without a word */
        status = check_placement(*placement, values->counted_under,
                                 EPLB_VALIDATE_ALLOW_EMPTY | EPLB_VALIDATE_ALLOW_DUPLICATES, error);
    }
    if (status != EPLB_OK) {
        eplb_placement_destroy(placement);
    }
    return status;
}

eplb_read_options counting_reading(const counting_values *values, const eplb_placement *placement,
                                   const eplb_format *from, int32_t experts)
{
    eplb_read_options reading = reading_options(from, experts);
    reading.array = values->array;
    reading.counted_under = placement;
    return reading;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Whether a message speaks of a row with more counts than experts: "12 counts, expected 8", or
 * "expert 8 not in 0..7". */
static bool is_too_wide(const char *message, int32_t experts)
{
    char range[48];
    char expected[48];
    snprintf(range, sizeof(range), " not in 0..%d", experts - 1);
    snprintf(expected, sizeof(expected), "expected %d, the number of experts", experts);
    if (strstr(message, range) != NULL) {
        return true;
    }
    const char *end = strstr(message, expected);
    while (end != NULL && end > message && !is_digit(end[-1])) {
        end--;
    }
    if (end == NULL || end == message) {
        return false;
    }
    const char *digits = end;
    while (digits > message && is_digit(digits[-1])) {
        digits--;
    }
    return strtol(digits, NULL, 10) > experts;
}

void counting_explain(const counting_values *values, const model_answers *model, int32_t experts,
                      eplb_error *error)
{
    bool asks =
        values->counted_under == NULL && experts > 0 && is_too_wide(error->message, experts);
    model_explain(model, error);
    if (asks) {
        eplb_error given = *error;
        bool is_said = strstr(given.message, "counted under") != NULL;
        eplb_error_set(error, (eplb_status)given.status, "%.400s%s", given.message,
                       is_said ? ": --counted-under FILE" : "; " REMEDY);
    }
}

void counting_explain_current(const counting_values *values, const char *current,
                              const eplb_load *load, eplb_error *error)
{
    if (values->counted_under != NULL || current == NULL || strcmp(current, "-") == 0) {
        return;
    }
    eplb_placement *placement;
    if (read_on_any_gpus(&placement, current, 0, NULL, NULL) != EPLB_OK) {
        return;
    }
    int32_t counts = eplb_load_experts(load);
    int32_t experts = eplb_placement_experts(placement);
    int32_t slots = eplb_placement_slots(placement);
    eplb_placement_destroy(&placement);
    eplb_error given = *error;
    if (experts < counts && slots == counts) {
        eplb_error_set(error, EPLB_ERROR_DATA,
                       "the loads have %d counts a layer, as many as %.200s has slots, but it has "
                       "%d experts: if they are counts of its slots, give --counted-under %.200s",
                       counts, current, experts, current);
    } else if (experts < counts) {
        eplb_error_set(error, (eplb_status)given.status,
                       "%.300s (%d counts a layer, %d experts); " REMEDY, given.message, counts,
                       experts);
    }
}
