/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "formats.h"
#include "memory.h"
#include "message.h"
#include "output.h"
#include "plan_job.h"
#include "plan_weights.h"

const eplb_placement *plan_result(const plan_job *self)
{
    return self->weighted != NULL   ? self->weighted
           : self->repaired != NULL ? self->repaired
                                    : eplb_plan_placement(self->plan);
}

static bool is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

/* Some engines take a map with a wrong number of layers without a word. */
static void warn_of_unknown_layers(const plan_job *self)
{
    int32_t layers = eplb_load_layers(self->load);
    if ((eplb_format_flags(self->to) & EPLB_FORMAT_MODEL_LAYER_IDS) == 0 ||
        eplb_load_model_layers(self->load) > 0) {
        return;
    }
    eplb_error line;
    eplb_error_set(&line, EPLB_OK,
                   "the loads do not say which layers of the model are dense: the last layer in %s "
                   "has the number %d; --dense-layers LIST, or none, says it",
                   is_stdout(self->values->out) ? "the map" : self->values->out,
                   eplb_load_layer_ids(self->load)[layers - 1]);
    print_warning(NULL, EPLB_LOG_WARNING, line.message);
}

static eplb_status check_valid(const plan_report *report, eplb_error *error)
{
    return report->valid ? EPLB_OK
                         : eplb_error_set(error, EPLB_ERROR_DATA,
                                          "the plan is not valid and is not written: %s; --repair "
                                          "mends it",
                                          report->violation);
}

static eplb_status write_placement(const plan_job *self, const plan_report *report,
                                   eplb_error *error)
{
    if (check_valid(report, error) != EPLB_OK) {
        return EPLB_ERROR_DATA;
    }
    eplb_status status =
        eplb_placement_write(plan_result(self), &self->hooks, self->values->out, self->to, error);
    if (status == EPLB_OK) {
        warn_of_unknown_layers(self);
    }
    return status;
}

/* The weights' file is ready before the placement's appears, and appears after it. */
static int write_both(const plan_job *self, const plan_report *report)
{
    eplb_error error;
    if (check_valid(report, &error) != EPLB_OK) {
        return fail(&error);
    }
    sink *weights = malloc(sizeof(*weights));
    if (weights == NULL) {
        return out_of_memory();
    }
    sink_open(weights, self->values->weights);
    int exit_code;
    if (plan_write_weights(weights, plan_result(self), self->load) == EPLB_OK &&
        self->values->out != NULL && write_placement(self, report, &error) != EPLB_OK) {
        sink_discard(weights);
        exit_code = fail(&error);
    } else {
        exit_code = sink_close(weights);
    }
    free(weights);
    return exit_code;
}

static int write_files(const plan_job *self, const plan_report *report)
{
    eplb_error error;
    if (self->values->weights != NULL) {
        return write_both(self, report);
    }
    return self->values->out != NULL && write_placement(self, report, &error) != EPLB_OK
               ? fail(&error)
               : EXIT_DONE;
}

/* Writes the placement and its weights, then tells about them. */
int plan_deliver(const plan_job *self, plan_report *report)
{
    const plan_values *values = self->values;
    report->algorithm = plan_algorithms[values->algorithm];
    report->repaired_slots = self->repaired_slots;
    report->out = values->out;
    report->format = self->to;
    int written = write_files(self, report);
    if (written != EXIT_DONE) {
        return written;
    }
    if (self->assumes_experts) {
        note_assumed_experts(eplb_load_experts(self->load));
    }
    int exit_code =
        values->detailed_exitcode && report->proposes_changes ? EXIT_CHANGES : EXIT_DONE;
    if (values->json) {
        return plan_report_print_json(report, exit_code);
    }
    bool is_taken = is_stdout(values->out) || is_stdout(values->weights);
    plan_report_print(report, is_taken ? stderr : stdout);
    return output_finish(exit_code);
}
