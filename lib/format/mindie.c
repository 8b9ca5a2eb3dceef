/* SPDX-License-Identifier: MIT */
/*
 * Counts of MindIE: a directory of decode_<rank>.csv and prefill_<rank>.csv. The rows of a phase
 * are the layers of one step. With a model_gen_config.json beside them they are sums since the
 * beginning, one row for each layer of each iteration, and each iteration is a step. The steps of
 * prefill come first.
 */
#include <stdio.h>

#include "base/memory.h"
#include "format/mindie_config.h"
#include "format/mindie_growth.h"
#include "format/mindie_ranks.h"
#include "format/options.h"
#include "format/quote.h"
#include "format/warn.h"

#define NO_CONFIG "sums of several iterations need a " EPLB_MINDIE_CONFIG " with num_moe_layers"

enum { PHASES = 2 };

static const char *const phases[PHASES] = {"prefill", "decode"};

typedef struct mindie {
    eplb_mindie_config config; /* layers 0: there is none */
    eplb_mindie_ranks ranks;   /* of the phase that is being read */
    int32_t phase;             /* the next one */
    int32_t width;             /* of all rows; 0 before the first */
    int32_t layers;            /* of the steps that were read; 0 before the end of the first */
    int64_t step;
    int32_t layer;
    eplb_mindie_growth growth; /* of the phase, where there is no config */
} mindie;

static bool has_phase(const eplb_listing *listing, const char *phase)
{
    for (int32_t i = 0; i < listing->count; i++) {
        int32_t rank;
        if (eplb_mindie_rank_of(listing->names[i], phase, &rank)) {
            return true;
        }
    }
    return false;
}

static bool probe_directory(const eplb_listing *listing)
{
    return has_phase(listing, phases[0]) || has_phase(listing, phases[1]);
}

/* One of the files: its first line has numbers only. It is known, so that open can say what to do
 * with it. */
static bool probe(const eplb_probe *probe)
{
    const char *text = probe->data;
    size_t digits = strspn(text, "0123456789");
    size_t length = strspn(text, "0123456789.,eE+-\r");
    return probe->wanted == EPLB_FORMAT_READS_COUNTS && digits > 0 &&
           (text[length] == '\n' || length == probe->size) && memchr(text, ',', length) != NULL;
}

/* Beside the counts there may be backups, what is named topk, and configurations. */
static bool is_companion(const char *name)
{
    size_t length = strlen(name);
    return strncmp(name, "prefill_", 8) == 0 || strncmp(name, "decode_", 7) == 0 ||
           (length > 5 && strcmp(name + length - 5, ".json") == 0);
}

/* A rank of more digits than any job has: not a file to leave aside. */
static bool is_rank_too_large(const char *name)
{
    const char *digits = strchr(name, '_');
    size_t count = digits != NULL ? strspn(digits + 1, "0123456789") : 0;
    int32_t rank;
    return count > 0 && strncmp(digits + 1 + count, ".csv", 4) == 0 &&
           !eplb_mindie_rank_of(name, phases[0], &rank) &&
           !eplb_mindie_rank_of(name, phases[1], &rank);
}

static eplb_status check_names(const eplb_reading *reading, bool *has_config, eplb_error *error)
{
    const eplb_listing *listing = reading->listing;
    *has_config = false;
    if (!probe_directory(listing)) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: a directory without decode_<rank>.csv or prefill_<rank>.csv",
                              reading->input.name);
    }
    for (int32_t i = 0; i < listing->count; i++) {
        const char *name = listing->names[i];
        if (!is_companion(name) || is_rank_too_large(name)) {
            return eplb_error_set(error, EPLB_ERROR_DATA,
                                  "%s: '%s' is no file of a recording of MindIE",
                                  reading->input.name, eplb_quote_bytes(name, strlen(name)).text);
        }
        *has_config = *has_config || strcmp(name, EPLB_MINDIE_CONFIG) == 0;
    }
    return EPLB_OK;
}

/* Opens the files of the next phase that the recording has. EPLB_END when there is none. */
static eplb_status open_phase(mindie *self, const eplb_reading *reading, eplb_error *error)
{
    while (self->phase < PHASES && !has_phase(reading->listing, phases[self->phase])) {
        self->phase++;
    }
    if (self->phase == PHASES) {
        return EPLB_END;
    }
    self->ranks.is_cumulative = self->config.layers > 0;
    return eplb_mindie_ranks_open(&self->ranks, reading, phases[self->phase++], error);
}

static eplb_status check_config(const mindie *self, const eplb_reading *reading, eplb_error *error)
{
    int32_t stated = self->config.experts;
    int32_t known = reading->logical_experts;
    return stated == 0 || known == 0 || stated == known
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_DATA,
                                "%s: num_of_experts of " EPLB_MINDIE_CONFIG " is %d, expected %d",
                                reading->input.name, stated, known);
}

static eplb_status open_counts(eplb_reading *reading, eplb_error *error)
{
    reading->state = NULL;
    if (reading->listing == NULL) {
        return eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                              "%s: numbers without a header: if it is one rank of a recording of "
                              "MindIE, give the directory with those of all ranks",
                              reading->input.name);
    }
    mindie *self = eplb_alloc_zeroed(&reading->hooks, 1, sizeof(*self));
    reading->state = self;
    bool has_config = false;
    eplb_status status =
        self != NULL ? check_names(reading, &has_config, error) : eplb_out_of_memory(error);
    for (int32_t p = 0; p < PHASES && status == EPLB_OK; p++) {
        status = eplb_mindie_ranks_check(reading, phases[p], error);
    }
    if (status == EPLB_OK && has_config) {
        status = eplb_mindie_config_read(reading, &self->config, error);
    }
    if (status == EPLB_OK) {
        status = check_config(self, reading, error);
    }
    return status == EPLB_OK ? open_phase(self, reading, error) : status;
}

/* All rows of a phase have one width: it must be that of the other phase, and the known one. */
static eplb_status check_width(mindie *self, const eplb_reading *reading, eplb_error *error)
{
    const eplb_mindie_ranks *ranks = &self->ranks;
    int32_t given = reading->options.experts;
    int32_t expected = given > 0                  ? given
                       : self->config.experts > 0 ? self->config.experts
                                                  : self->width;
    self->width = ranks->row.length;
    if (expected == 0 || expected == self->width) {
        return EPLB_OK;
    }
    const char *source =
        reading->options.counted_under != NULL ? eplb_words_for_width(&reading->options)
        : given > 0 ? "as was given: those of slots need the placement that they were counted under"
        : self->config.experts > 0
            ? "num_of_experts of " EPLB_MINDIE_CONFIG
              ": those of slots need the placement that they were counted under"
            : "as in prefill: those of slots need the placement that they were counted under";
    return eplb_error_set(error, EPLB_ERROR_DATA,
                          "%s: %s: %d ranks of %d columns are %d counts a layer, expected %d, %s",
                          reading->input.name, phases[self->phase - 1], ranks->count,
                          ranks->columns, self->width, expected, source);
}

/* Rows that grow are most likely sums, but counts may: who reads them must know. */
static void warn_of_growth(mindie *self, const eplb_reading *reading)
{
    int32_t rows = self->growth.rows;
    int32_t layers = eplb_mindie_growth_layers(&self->growth);
    if (layers > 0) {
        eplb_warn(&reading->hooks,
                  "%s: %s: %d rows, which look like sums of %d iterations of %d layer%s, but are "
                  "taken for %d layers: " NO_CONFIG,
                  reading->input.name, phases[self->phase - 1], rows, rows / layers, layers,
                  layers == 1 ? "" : "s", rows);
    }
    eplb_mindie_growth_clear(&self->growth, &reading->hooks);
}

/* Makes sure that the phase that ended had whole steps, and goes on to the next step. */
static eplb_status finish_phase(mindie *self, const eplb_reading *reading, eplb_error *error)
{
    const char *phase = phases[self->phase - 1];
    bool is_cumulative = self->ranks.is_cumulative;
    if (is_cumulative && self->layer > 0) {
        return eplb_error_set(error, EPLB_ERROR_PARSE,
                              "%s: %s: %lld rows: the last iteration has %d of the %d layers of "
                              "num_moe_layers",
                              reading->input.name, phase, (long long)self->ranks.rows, self->layer,
                              self->config.layers);
    }
    warn_of_growth(self, reading);
    if (!is_cumulative && self->layers > 0 && self->layers != self->layer) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: %s: %d layers, but %d in prefill: " NO_CONFIG,
                              reading->input.name, phase, self->layer, self->layers);
    }
    self->layers = self->layer;
    self->step += is_cumulative ? 0 : 1;
    self->layer = 0;
    eplb_mindie_ranks_close(&self->ranks);
    return open_phase(self, reading, error);
}

static bool has_tokens(const eplb_counts_buffer *row)
{
    for (int32_t i = 0; i < row->length; i++) {
        if (row->values[i] > 0.0) {
            return true;
        }
    }
    return false;
}

/* Layers of an iteration that a configuration tells are within the limits. */
static eplb_status check_layer(const mindie *self, const eplb_reading *reading, eplb_error *error)
{
    const eplb_placement *under = reading->options.counted_under;
    const char *name = reading->input.name;
    const char *phase = phases[self->phase - 1];
    if (self->layer == reading->options.max_layers) {
        return eplb_error_set(error, EPLB_ERROR_LIMIT,
                              "%s: %s: layer %d: more than %d layers: " NO_CONFIG, name, phase,
                              self->layer, self->layer);
    }
    if (self->config.layers == 0 && under != NULL && self->layer >= eplb_placement_layers(under) &&
        has_tokens(&self->ranks.row)) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%s: %s: layer %d: not in the placement that it was counted under, "
                              "which has %d: " NO_CONFIG,
                              name, phase, self->layer, eplb_placement_layers(under));
    }
    return EPLB_OK;
}

static eplb_status keep_growth(mindie *self, const eplb_reading *reading, eplb_error *error)
{
    const eplb_counts_buffer *row = &self->ranks.row;
    return self->config.layers > 0 ||
                   eplb_mindie_growth_add(&self->growth, &reading->hooks, row->values, row->length)
               ? EPLB_OK
               : eplb_out_of_memory(error);
}

static void advance(mindie *self)
{
    self->layer++;
    if (self->layer == self->config.layers) {
        self->layer = 0;
        self->step++;
    }
}

static eplb_status next_counts(eplb_reading *reading, eplb_counts_row *row, eplb_error *error)
{
    mindie *self = reading->state;
    eplb_status status;
    while ((status = eplb_mindie_ranks_next(&self->ranks, self->step, self->layer, error)) ==
           EPLB_END) {
        status = finish_phase(self, reading, error);
        if (status != EPLB_OK) {
            return status;
        }
    }
    if (status == EPLB_OK) {
        status = check_layer(self, reading, error);
    }
    if (status == EPLB_OK && self->ranks.rows == 1) {
        status = check_width(self, reading, error);
    }
    if (status == EPLB_OK) {
        status = keep_growth(self, reading, error);
    }
    if (status != EPLB_OK) {
        return status;
    }
    *row = (eplb_counts_row){.step = self->step,
                             .layer = self->layer,
                             .length = self->ranks.row.length,
                             .counts = self->ranks.row.values};
    advance(self);
    return EPLB_OK;
}

static void close_counts(eplb_reading *reading)
{
    mindie *self = reading->state;
    if (self != NULL) {
        eplb_mindie_ranks_close(&self->ranks);
        eplb_mindie_growth_clear(&self->growth, &reading->hooks);
        eplb_free(&reading->hooks, self);
    }
}

const eplb_format eplb_format_mindie = {
    .name = "mindie",
    .description = "directory of MindIE's decode_<rank>.csv and prefill_<rank>.csv",
    .engine = "MindIE",
    .recognised = "a directory with decode_<rank>.csv or prefill_<rank>.csv",
    .flags = EPLB_FORMAT_READS_COUNTS,
    .probe = probe,
    .counts = {.open = open_counts,
               .next = next_counts,
               .close = close_counts,
               .probe_directory = probe_directory},
};
