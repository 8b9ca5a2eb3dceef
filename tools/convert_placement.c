/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "convert.h"
#include "current.h"
#include "draft_layers.h"
#include "formats.h"
#include "launch.h"
#include "message.h"
#include "output.h"

static int32_t gpus_of(const eplb_placement *placement)
{
    return eplb_cluster_gpus(eplb_placement_cluster(placement));
}

static int read_file(const conversion *self, eplb_placement **placement, const eplb_format **format)
{
    const convert_values *values = self->values;
    eplb_read_options reading = reading_options(self->from, values->experts);
    reading.gpus = values->gpus;
    eplb_error error;
    eplb_status status =
        eplb_placement_read(placement, &self->hooks, self->path, &reading, format, &error);
    if (status == EPLB_ERROR_ARGUMENT && values->gpus == 0) {
        return usage_error(convert_command.name, "%s with --gpus N", error.message);
    }
    if (status == EPLB_OK) {
        return EXIT_DONE;
    }
    rereadable_explain(&self->input, &error);
    return fail(&error);
}

/* Some engines take a map with a wrong number of layers without a word. */
static void warn_of_unknown_layers(const conversion *self, const eplb_placement *placement)
{
    if ((eplb_format_flags(self->to) & EPLB_FORMAT_ALL_MODEL_LAYERS) == 0 ||
        eplb_placement_model_layers(placement) > 0) {
        return;
    }
    int32_t layers = eplb_placement_layers(placement);
    eplb_error line;
    eplb_error_set(&line, EPLB_OK,
                   "nothing says how many layers the model has: the last in the map has the number "
                   "%d; --dense-layers LIST, or none, or --model says it",
                   eplb_placement_layer_ids(placement)[layers - 1]);
    print_warning(NULL, EPLB_LOG_WARNING, line.message);
}

static int tell(const conversion *self, const eplb_placement *placement, const eplb_format *from)
{
    const convert_values *values = self->values;
    int32_t layers = eplb_placement_layers(placement);
    int32_t experts = eplb_placement_experts(placement);
    int32_t slots = eplb_placement_slots(placement);
    if (values->json) {
        cJSON *document = json_begin("eplb.convert/1");
        cJSON_AddStringToObject(document, "what", "placement");
        cJSON_AddStringToObject(document, "from", eplb_format_name(from));
        cJSON_AddStringToObject(document, "to", eplb_format_name(self->to));
        json_add_text(document, "out", values->out);
        json_add_integer(document, "layers", layers);
        json_add_integer(document, "draft_layers", eplb_placement_draft_layers(placement));
        json_add_integer(document, "experts", experts);
        json_add_integer(document, "gpus", gpus_of(placement));
        json_add_integer(document, "slots", slots);
        return json_finish(document, EXIT_DONE);
    }
    FILE *out = strcmp(values->out, "-") == 0 ? stderr : stdout;
    char of_draft[48];
    fprintf(out,
            "Placement, %s to %s: %" PRId32 " layer%s%s of %" PRId32 " experts on %" PRId32
            " GPU%s (%" PRId32 " slots)\n",
            eplb_format_name(from), eplb_format_name(self->to), layers, plural(layers),
            draft_layers_text(eplb_placement_draft_layers(placement), of_draft, sizeof(of_draft)),
            experts, gpus_of(placement), plural(gpus_of(placement)), slots);
    const written_map map = {.format = self->to, .path = values->out, .redundant = slots - experts};
    print_launch_hint(&map, out);
    return output_finish(EXIT_DONE);
}

/* The two ways on where a format cannot tell whose the last layers are. */
static void explain_draft_layers(const conversion *self, const eplb_placement *placement,
                                 eplb_error *error)
{
    if (error->status == EPLB_ERROR_UNSUPPORTED &&
        eplb_placement_draft_layers(placement) > eplb_format_draft_layers(self->to)) {
        eplb_error given = *error;
        eplb_error_set(error, EPLB_ERROR_UNSUPPORTED,
                       "%.300s; --without-draft-layers leaves them out, --draft-layers 0 makes "
                       "layers of the model of them",
                       given.message);
    }
}

static int write_converted(const conversion *self, const eplb_placement *read,
                           const eplb_format *from)
{
    eplb_error error;
    eplb_placement *placement = NULL;
    eplb_status status = convert_layers(&placement, self, read, from, &error);
    if (status == EPLB_OK) {
        status = check_placement(placement, self->values->files.items[0], 0, &error);
    }
    if (status == EPLB_OK) {
        status = eplb_placement_write(placement, &self->hooks, self->values->out, self->to, &error);
        if (status != EPLB_OK) {
            explain_draft_layers(self, placement, &error);
        }
    }
    int exit_code = EXIT_DONE;
    if (status == EPLB_OK) {
        warn_of_unknown_layers(self, placement);
        exit_code = tell(self, placement, from);
    }
    eplb_placement_destroy(&placement);
    return status == EPLB_OK ? exit_code : fail(&error);
}

int convert_placement(const conversion *self)
{
    eplb_placement *read = NULL;
    const eplb_format *from;
    int exit_code = read_file(self, &read, &from);
    if (exit_code == EXIT_DONE) {
        exit_code = write_converted(self, read, from);
    }
    eplb_placement_destroy(&read);
    return exit_code;
}
