/* SPDX-License-Identifier: MIT */
#include "base/memory.h"
#include "format/counted_under.h"
#include "format/likeness.h"

struct eplb_counts_reader {
    eplb_reading reading;
    const eplb_format *format;
    eplb_counted_under fold;
    eplb_map_likeness likeness;
    eplb_status finished; /* EPLB_OK while rows may come */
};

eplb_status eplb_counts_open(eplb_counts_reader **out, const eplb_hooks *hooks, const char *path,
                             const eplb_read_options *options, eplb_error *error)
{
    if (out == NULL || path == NULL || path[0] == '\0') {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "counts: no output or no path");
    }
    *out = NULL;
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_counts_reader *reader = eplb_alloc_zeroed(&resolved, 1, sizeof(*reader));
    if (reader == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = eplb_reading_open(&reader->reading, &resolved, path, options,
                                           EPLB_FORMAT_READS_COUNTS, &reader->format, error);
    if (status != EPLB_OK) {
        eplb_free(&resolved, reader);
        return status;
    }
    reader->likeness.format = eplb_likeness_find(&reader->reading, EPLB_FORMAT_READS_PLACEMENT);
    status = eplb_counted_under_resolve(&reader->reading, error);
    if (status == EPLB_OK) {
        status = reader->format->counts.open(&reader->reading, error);
    }
    if (status == EPLB_OK) {
        status = eplb_counted_under_init(&reader->fold, &reader->reading, reader->format, error);
    }
    if (status != EPLB_OK) {
        eplb_counts_close(&reader);
        return status;
    }
    *out = reader;
    return EPLB_OK;
}

eplb_status eplb_counts_next(eplb_counts_reader *reader, eplb_counts_row *row, eplb_error *error)
{
    if (reader == NULL || row == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "counts: no reader or no row");
    }
    if (reader->finished == EPLB_OK) {
        eplb_status status = reader->format->counts.next(&reader->reading, row, error);
        if (status == EPLB_OK) {
            eplb_map_likeness_add(&reader->likeness, row);
            status = eplb_counted_under_fold(&reader->fold, row, error);
        } else if (status == EPLB_END) {
            eplb_map_likeness_warn(&reader->likeness, &reader->reading);
            status = eplb_counted_under_finish(&reader->fold, error);
        }
        reader->finished = status;
    } else if (reader->finished != EPLB_END) {
        return eplb_error_set(error, reader->finished, "%s: an earlier read failed",
                              reader->reading.input.name);
    }
    return reader->finished;
}

void eplb_counts_close(eplb_counts_reader **reader)
{
    if (reader == NULL || *reader == NULL) {
        return;
    }
    eplb_counts_reader *self = *reader;
    eplb_hooks hooks = self->reading.hooks;
    self->format->counts.close(&self->reading);
    eplb_reading_close(&self->reading);
    eplb_counted_under_clear(&self->fold, &hooks);
    eplb_free(&hooks, self);
    *reader = NULL;
}

int32_t eplb_counts_model_layers(const eplb_counts_reader *reader)
{
    return reader->reading.model_layers;
}

int32_t eplb_counts_rank(const eplb_counts_reader *reader)
{
    return reader->reading.rank;
}

int32_t eplb_counts_are_logical(const eplb_counts_reader *reader)
{
    /* SGLang's logical_count alone has rows of all layers. */
    bool says_so = (reader->format->flags & EPLB_FORMAT_ALL_MODEL_LAYERS) != 0;
    return says_so || reader->reading.is_folded || reader->fold.placement != NULL ? 1 : 0;
}

const eplb_format *eplb_counts_format(const eplb_counts_reader *reader)
{
    return reader->format;
}
