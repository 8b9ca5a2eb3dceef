/* SPDX-License-Identifier: MIT */
/* Counts are read three times: for the layers that have experts, for the number of steps, which
 * stands at the beginning of arrays, and step by step. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/source.h>

#include "convert.h"
#include "current.h"
#include "dense_layers.h"
#include "file_layers.h"
#include "formats.h"
#include "launch.h"
#include "message.h"
#include "output.h"

typedef struct counts_job {
    conversion *order;
    eplb_placement *counted_under; /* NULL: counts are of logical experts */
    eplb_load *load;               /* summed over steps */
    int32_t *file_ids;             /* [layers]: their numbers in the files */
    bool assumes_experts;
    int64_t steps;
    double tokens;
    eplb_counts_writer *writer; /* NULL: steps are counted */
} counts_job;

static eplb_read_options reading_of(const counts_job *self, int32_t experts)
{
    return counting_reading(&self->order->values->counting, self->counted_under, self->order->from,
                            experts);
}

static eplb_status read_load(counts_job *self, eplb_error *error)
{
    const conversion *order = self->order;
    const convert_values *values = order->values;
    eplb_read_options reading = reading_of(self, values->experts);
    int32_t are_logical = 0;
    eplb_source_load_options whole;
    eplb_source_load_options_init(&whole);
    whole.slices = 1;
    whole.are_logical = &are_logical;
    const char *text = order->input.text;
    eplb_status status =
        eplb_source_load(&self->load, &order->hooks, &text, 1, &reading, &whole, error);
    if (status != EPLB_OK) {
        counting_explain(&values->counting, &order->model, values->experts, error);
        return status;
    }
    self->assumes_experts = are_logical == 0 && values->experts == 0;
    return name_file_layers(&self->load, &self->file_ids, &values->dense_layers, -1, &order->model,
                            &order->hooks, error);
}

static eplb_status refuse_missing(const counts_job *self, eplb_error *error)
{
    char whose[256];
    snprintf(whose, sizeof(whose), "%.198s:", eplb_load_scenario_name(self->load, 0));
    return check_every_layer(self->load, &self->order->values->dense_layers, whose, self->order->to,
                             error);
}

/* A format of all model layers needs to know where the MoE layers are among them. */
static eplb_status check_layers(counts_job *self, eplb_error *error)
{
    bool all = (eplb_format_flags(self->order->to) & EPLB_FORMAT_ALL_MODEL_LAYERS) != 0;
    eplb_status status = needs_every_layer(self->order->to) ? refuse_missing(self, error) : EPLB_OK;
    if (status != EPLB_OK || !all || eplb_load_model_layers(self->load) > 0) {
        return status;
    }
    int32_t layers = eplb_load_layers(self->load);
    const int32_t *ids = eplb_load_layer_ids(self->load);
    if (are_layer_indices(ids, layers)) {
        return eplb_error_set(error, EPLB_ERROR_DATA,
                              "%.200s: layers 0 to %d, and nothing says which layers of the model "
                              "are dense: --dense-layers LIST, or none, or --model config.json "
                              "does",
                              eplb_load_scenario_name(self->load, 0), layers - 1);
    }
    eplb_error line;
    eplb_error_set(&line, EPLB_OK,
                   "nothing says how many layers the model has: the last one written has the "
                   "number %d; --dense-layers LIST, or --model says it",
                   ids[layers - 1]);
    print_warning(NULL, EPLB_LOG_WARNING, line.message);
    return EPLB_OK;
}

/* Rows of layers that the load left out are dense. Both lists of ids ascend. */
static eplb_status take_step(counts_job *self, const eplb_source_step *step, int64_t *rows,
                             eplb_error *error)
{
    const int32_t layers = eplb_load_layers(self->load);
    const int32_t *ids = eplb_load_layer_ids(self->load);
    int32_t layer = 0;
    eplb_status status = EPLB_OK;
    *rows = 0;
    for (int32_t r = 0; r < step->rows && status == EPLB_OK; r++) {
        while (layer < layers && self->file_ids[layer] < step->layer_ids[r]) {
            layer++;
        }
        if (layer == layers || self->file_ids[layer] != step->layer_ids[r]) {
            continue;
        }
        ++*rows;
        if (self->writer != NULL) {
            const double *counts = step->counts + (size_t)r * (size_t)step->experts;
            status = eplb_counts_writer_add(self->writer, step->step, ids[layer], counts,
                                            step->experts, error);
        }
    }
    return status;
}

/* What the first pass had to say about the files is not to be said again. */
static eplb_status pass_over(counts_job *self, eplb_error *error)
{
    eplb_read_options reading = reading_of(self, eplb_load_experts(self->load));
    eplb_hooks quiet = self->order->hooks;
    quiet.log = NULL;
    eplb_source *source;
    eplb_status status =
        eplb_source_open(&source, &quiet, self->order->input.text, &reading, error);
    int64_t steps = 0;
    while (status == EPLB_OK) {
        eplb_source_step step = {.struct_size = sizeof(step)};
        int64_t rows = 0;
        status = eplb_source_next(source, &step, error);
        status = status == EPLB_OK ? take_step(self, &step, &rows, error) : status;
        steps += rows > 0 ? 1 : 0;
    }
    eplb_source_close(&source);
    self->steps = steps;
    return status == EPLB_END ? EPLB_OK : status;
}

static eplb_status write_counts(counts_job *self, eplb_error *error)
{
    const conversion *order = self->order;
    eplb_counts_shape shape;
    eplb_counts_shape_init(&shape);
    shape.layers = eplb_load_layers(self->load);
    shape.layer_ids = eplb_load_layer_ids(self->load);
    shape.model_layers = eplb_load_model_layers(self->load);
    shape.experts = eplb_load_experts(self->load);
    shape.steps = self->steps;
    eplb_status status = eplb_counts_writer_create(&self->writer, &order->hooks, order->values->out,
                                                   order->to, &shape, error);
    if (status == EPLB_OK) {
        status = pass_over(self, error);
    }
    return status == EPLB_OK ? eplb_counts_writer_commit(self->writer, error) : status;
}

static void sum_tokens(counts_job *self)
{
    for (int32_t l = 0; l < eplb_load_layers(self->load); l++) {
        const double *row = eplb_load_row(self->load, 0, l);
        for (int32_t e = 0; e < eplb_load_experts(self->load); e++) {
            self->tokens += row[e];
        }
    }
}

static int tell_json(const counts_job *self)
{
    const convert_values *values = self->order->values;
    cJSON *document = json_begin("eplb.convert/1");
    cJSON_AddStringToObject(document, "what", "counts");
    cJSON_AddStringToObject(document, "to", eplb_format_name(self->order->to));
    json_add_text(document, "out", values->out);
    json_add_integer(document, "steps", self->steps);
    json_add_integer(document, "layers", eplb_load_layers(self->load));
    json_add_integer(document, "experts", eplb_load_experts(self->load));
    cJSON_AddNumberToObject(document, "assignments", self->tokens);
    return json_finish(document, EXIT_DONE);
}

static int tell(const counts_job *self)
{
    const convert_values *values = self->order->values;
    if (self->assumes_experts) {
        note_assumed_experts(eplb_load_experts(self->load));
    }
    if (values->json) {
        return tell_json(self);
    }
    FILE *out = strcmp(values->out, "-") == 0 ? stderr : stdout;
    int32_t layers = eplb_load_layers(self->load);
    fprintf(out,
            "Counts to %s: %" PRId64 " step%s of %" PRId32 " layer%s of %" PRId32
            " experts, %.0f assignments\n",
            eplb_format_name(self->order->to), self->steps, plural(self->steps), layers,
            plural(layers), eplb_load_experts(self->load), self->tokens);
    print_counts_hint(self->order->to, values->out, out);
    return output_finish(EXIT_DONE);
}

static eplb_status convert(counts_job *self, eplb_error *error)
{
    const convert_values *values = self->order->values;
    eplb_status status = counting_open(&self->counted_under, &values->counting, values->experts,
                                       &self->order->hooks, error);
    eplb_status (*const passes[])(counts_job *, eplb_error *) = {read_load, check_layers, pass_over,
                                                                 write_counts};
    for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]) && status == EPLB_OK; i++) {
        status = passes[i](self, error);
    }
    return status;
}

int convert_counts(conversion *self)
{
    counts_job job = {.order = self};
    eplb_error error;
    int exit_code = EXIT_DONE;
    if (convert(&job, &error) == EPLB_OK) {
        sum_tokens(&job);
        exit_code = tell(&job);
    } else {
        rereadable_explain(&self->input, &error);
        exit_code = fail(&error);
    }
    eplb_counts_writer_destroy(&job.writer);
    free(job.file_ids);
    eplb_load_destroy(&job.load);
    eplb_placement_destroy(&job.counted_under);
    return exit_code;
}
