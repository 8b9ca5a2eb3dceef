/* SPDX-License-Identifier: MIT */
#include "sweep.h"

#include <stdlib.h>

#include "commands.h"
#include "formats.h"
#include "load_reading.h"
#include "message.h"
#include "output.h"
#include "processors.h"
#include "progress.h"
#include "sweep_knee.h"

/* What the command holds while it plans. */
typedef struct sweep_job {
    const sweep_values *values;
    model_answers model;
    const eplb_format *from;
    eplb_hooks hooks;
    eplb_load *load;
    bool assumes_experts;
    sweep result;
} sweep_job;

const plan_scenario *sweep_worst_scenario(const sweep_row *row)
{
    const plan_scenario *worst = NULL;
    for (int32_t k = 0; k < row->report.scenarios; k++) {
        const plan_scenario *s = &row->report.scenario[k];
        if (s->layers > 0 && (worst == NULL || s->after.mean > worst->after.mean)) {
            worst = s;
        }
    }
    return worst;
}

static eplb_status read_load(sweep_job *self, eplb_error *error)
{
    const sweep_values *values = self->values;
    const load_request request = {.sources = &values->loads,
                                  .from = self->from,
                                  .experts = values->experts,
                                  .counting = &values->counting,
                                  .dense_layers = &values->dense_layers,
                                  .slices =
                                      values->objective == EPLB_OBJECTIVE_SUM ? 1 : values->slices,
                                  .model = &self->model};
    eplb_status status =
        read_scenarios(&self->load, &request, &self->assumes_experts, &self->hooks, error);
    if (status != EPLB_OK) {
        return status;
    }
    self->result.layers = eplb_load_layers(self->load);
    self->result.experts = eplb_load_experts(self->load);
    self->result.scenarios = eplb_load_scenarios(self->load);
    for (int32_t l = 0; l < self->result.layers; l++) {
        if (eplb_load_layer_is_zero(self->load, l) == 0) {
            return EPLB_OK;
        }
    }
    return eplb_error_set(error, EPLB_ERROR_DATA, "the loads have no tokens: nothing to balance");
}

static void add_combination(sweep *self, int32_t gpus, int32_t redundant)
{
    int32_t each;
    if (!sweep_fit(self->experts, gpus, redundant, &each)) {
        self->skips[self->skip_count++] = (sweep_skip){.gpus = gpus, .redundant = redundant};
        return;
    }
    sweep_row *last = self->row_count > 0 ? &self->rows[self->row_count - 1] : NULL;
    if (last != NULL && last->gpus == gpus && last->slots_per_gpu == each) {
        last->most_asked = redundant;
        return;
    }
    self->rows[self->row_count++] = (sweep_row){.gpus = gpus,
                                                .redundant = each * gpus - self->experts,
                                                .fewest_asked = redundant,
                                                .most_asked = redundant,
                                                .slots_per_gpu = each};
}

static eplb_status list_combinations(sweep_job *self, eplb_error *error)
{
    const id_list *gpus = &self->values->gpus;
    const id_list *redundant = &self->values->redundant;
    sweep *result = &self->result;
    size_t count = (size_t)gpus->count * (size_t)redundant->count;
    result->rows = calloc(count, sizeof(*result->rows));
    result->skips = calloc(count, sizeof(*result->skips));
    result->answers = calloc((size_t)gpus->count, sizeof(*result->answers));
    if (result->rows == NULL || result->skips == NULL || result->answers == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    for (int32_t g = 0; g < gpus->count; g++) {
        for (int32_t r = 0; r < redundant->count; r++) {
            add_combination(result, gpus->items[g], redundant->items[r]);
        }
    }
    return result->row_count > 0
               ? EPLB_OK
               : eplb_error_set(error, EPLB_ERROR_INFEASIBLE,
                                "no combination fits: with each of %d experts once on each GPU "
                                "there is no room for more",
                                result->experts);
}

static eplb_status make_plan(const sweep_job *self, const eplb_cluster *cluster, eplb_plan **plan,
                             eplb_error *error)
{
    progress shown;
    progress_begin(&shown);
    eplb_plan_options planning;
    eplb_plan_options_init(&planning);
    planning.effort = self->values->effort;
    planning.threads = planning_threads(self->values->threads);
    planning.objective = self->values->objective;
    planning.progress = progress_report;
    planning.progress_context = &shown;
    eplb_status status =
        eplb_plan_create(plan, &self->hooks, self->load, cluster, NULL, &planning, error);
    progress_end(&shown);
    return status;
}

static eplb_status fill_row(const sweep_job *self, sweep_row *row, eplb_error *error)
{
    eplb_cluster *cluster = NULL;
    eplb_plan *plan = NULL;
    eplb_status status =
        eplb_cluster_create(&cluster, &self->hooks, row->gpus, row->slots_per_gpu, 0, error);
    if (status == EPLB_OK) {
        status = make_plan(self, cluster, &plan, error);
    }
    if (status == EPLB_OK) {
        const plan_subject subject = {.load = self->load,
                                      .objective = (eplb_objective)self->values->objective,
                                      .plan = plan,
                                      .placement = eplb_plan_placement(plan),
                                      .expert_bytes = self->values->expert_bytes};
        status = plan_report_create(&row->report, &subject, error);
    }
    eplb_plan_destroy(&plan);
    eplb_cluster_destroy(&cluster);
    return status;
}

static eplb_status fill_rows(sweep_job *self, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    for (int32_t i = 0; i < self->result.row_count && status == EPLB_OK; i++) {
        status = fill_row(self, &self->result.rows[i], error);
    }
    return status;
}

/* The knee of the rows [count] of one number of GPUs; `imbalances` has room for all. */
static sweep_answer find_answer(sweep_row *rows, int32_t count, double *imbalances)
{
    for (int32_t i = 0; i < count; i++) {
        imbalances[i] = rows[i].report.after.mean;
    }
    int32_t knee = sweep_knee(imbalances, count);
    rows[knee].is_knee = true;
    return (sweep_answer){.knee = &rows[knee],
                          .last = &rows[count - 1],
                          .further_gain = sweep_gain_behind(imbalances, count, knee)};
}

static eplb_status find_answers(sweep_job *self, eplb_error *error)
{
    sweep *result = &self->result;
    double *imbalances = calloc((size_t)result->row_count, sizeof(*imbalances));
    if (imbalances == NULL) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    for (int32_t first = 0; first < result->row_count;) {
        int32_t count = 1;
        while (first + count < result->row_count &&
               result->rows[first + count].gpus == result->rows[first].gpus) {
            count++;
        }
        result->answers[result->answer_count++] =
            find_answer(&result->rows[first], count, imbalances);
        first += count;
    }
    free(imbalances);
    return EPLB_OK;
}

static int run(sweep_job *self)
{
    eplb_error error;
    eplb_status (*const steps[])(sweep_job *, eplb_error *) = {read_load, list_combinations,
                                                               fill_rows, find_answers};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (steps[i](self, &error) != EPLB_OK) {
            return fail(&error);
        }
    }
    if (self->assumes_experts) {
        note_assumed_experts(self->result.experts);
    }
    if (self->values->json) {
        return sweep_print_json(&self->result);
    }
    sweep_print(&self->result, stdout);
    return output_finish(EXIT_DONE);
}

static void release(sweep_job *self)
{
    for (int32_t i = 0; i < self->result.row_count; i++) {
        plan_report_destroy(&self->result.rows[i].report);
    }
    free(self->result.rows);
    free(self->result.skips);
    free(self->result.answers);
    eplb_load_destroy(&self->load);
    model_answers_release(&self->model);
}

static int prepare(sweep_job *self, sweep_values *values)
{
    int exit_code = sweep_values_check(values);
    if (exit_code == EXIT_DONE) {
        exit_code = find_format(sweep_command.name, "from", values->from, EPLB_FORMAT_READS_COUNTS,
                                &self->from);
    }
    const model_questions open = {.experts = &values->experts,
                                  .dense_layers = &values->dense_layers,
                                  .expert_bytes = &values->expert_bytes};
    return exit_code == EXIT_DONE ? model_answer(&self->model, values->model, &open) : exit_code;
}

int command_sweep(int argc, char **argv)
{
    sweep_values values = sweep_values_default;
    sweep_job job = {.values = &values, .result = {.values = &values}};
    eplb_hooks_init(&job.hooks);
    job.hooks.log = print_warning;
    int exit_code;
    if (options_parse(&sweep_command, argc, argv, &values, &exit_code)) {
        exit_code = prepare(&job, &values);
        exit_code = exit_code == EXIT_DONE ? run(&job) : exit_code;
    }
    release(&job);
    options_release(&sweep_command, &values);
    return exit_code;
}
