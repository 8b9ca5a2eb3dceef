/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "formats.h"
#include "message.h"
#include "output.h"

/* See no-color.org. */
static bool is_styled(void)
{
    const char *refusal = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) != 0 && (refusal == NULL || *refusal == '\0') &&
           terminal != NULL && strcmp(terminal, "dumb") != 0;
}

static void tell(const report *filled, cJSON *sources, bool is_first)
{
    if (sources != NULL) {
        report_add_json(filled, sources);
        return;
    }
    if (!is_first) {
        putchar('\n');
    }
    report_print(filled, is_styled(), stdout);
}

/* Reports on one source; `sources` NULL: as text. */
static int report_on(const report_values *values, const model_answers *model,
                     const eplb_format *from, int32_t index, cJSON *sources)
{
    eplb_error error;
    report_source source;
    report filled = {0};
    eplb_status status =
        report_source_read(&source, values, model, from, values->loads.items[index], &error);
    if (status == EPLB_OK) {
        status = report_fill(&filled, &source, &error);
    }
    if (status == EPLB_OK && source.assumes_experts) {
        note_assumed_experts(eplb_load_experts(source.load));
    }
    if (status == EPLB_OK) {
        tell(&filled, sources, index == 0);
    }
    report_release(&filled);
    report_source_close(&source);
    return status == EPLB_OK ? EXIT_DONE : fail(&error);
}

static int report_all(const report_values *values, const model_answers *model)
{
    const eplb_format *from;
    int exit_code =
        find_format(report_command.name, "from", values->from, EPLB_FORMAT_READS_COUNTS, &from);
    if (exit_code != EXIT_DONE) {
        return exit_code;
    }
    cJSON *document = values->json ? json_begin("eplb.report/1") : NULL;
    cJSON *sources = values->json ? cJSON_AddArrayToObject(document, "sources") : NULL;
    for (int32_t i = 0; i < values->loads.count && exit_code == EXIT_DONE; i++) {
        exit_code = report_on(values, model, from, i, sources);
    }
    if (document == NULL) {
        return output_finish(exit_code);
    }
    if (exit_code != EXIT_DONE) {
        cJSON_Delete(document);
        return exit_code;
    }
    return json_finish(document, exit_code);
}

static int ask_model(report_values *values, model_answers *model)
{
    const model_questions open = {
        .experts = &values->experts, .dense_layers = &values->dense_layers, .topk = &values->topk};
    return model_answer(model, values->model, &open);
}

int command_report(int argc, char **argv)
{
    report_values values = report_values_default;
    model_answers model = {0};
    int exit_code;
    if (options_parse(&report_command, argc, argv, &values, &exit_code)) {
        exit_code = report_values_check(&values);
        exit_code = exit_code == EXIT_DONE ? ask_model(&values, &model) : exit_code;
        exit_code = exit_code == EXIT_DONE ? report_all(&values, &model) : exit_code;
    }
    model_answers_release(&model);
    options_release(&report_command, &values);
    return exit_code;
}
