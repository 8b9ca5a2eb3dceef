/* SPDX-License-Identifier: MIT */
#include "convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "message.h"
#include "output.h"
#include "output_format.h"

/* The files as one source: their paths joined by commas. */
static bool join_files(conversion *self)
{
    const text_list *files = &self->values->files;
    size_t size = 1;
    for (int32_t f = 0; f < files->count; f++) {
        size += strlen(files->items[f]) + 1;
    }
    self->source = calloc(size, 1);
    for (int32_t f = 0; f < files->count && self->source != NULL; f++) {
        strcat(self->source, f > 0 ? "," : "");
        strcat(self->source, files->items[f]);
    }
    return self->source != NULL;
}

/* Makes the files readable more than once. */
static int open_files(conversion *self)
{
    if (!join_files(self)) {
        return out_of_memory();
    }
    eplb_error error;
    if (rereadable_open(&self->input, self->source, &error) != EPLB_OK) {
        return fail(&error);
    }
    self->path = self->values->files.items[0];
    if (strcmp(self->path, "-") == 0) {
        snprintf(self->standard_input, sizeof(self->standard_input), "/dev/fd/%d",
                 self->input.file);
        self->path = self->standard_input;
    }
    return EXIT_DONE;
}

static int run(conversion *self)
{
    int exit_code = open_files(self);
    if (exit_code == EXIT_DONE) {
        exit_code = convert_find_kind(self);
    }
    if (exit_code == EXIT_DONE) {
        exit_code = find_output_format(convert_command.name, self->values->out, self->is_placement,
                                       &self->to);
    }
    if (exit_code == EXIT_DONE) {
        exit_code = self->is_placement ? convert_placement(self) : convert_counts(self);
    }
    free(self->source);
    rereadable_close(&self->input);
    return exit_code;
}

static int ask_model(convert_values *values, model_answers *model)
{
    const model_questions open = {.experts = &values->experts,
                                  .dense_layers = &values->dense_layers};
    return model_answer(model, values->model, &open);
}

int command_convert(int argc, char **argv)
{
    convert_values values = convert_values_default;
    conversion self = {.values = &values, .input = {.file = -1}};
    eplb_hooks_init(&self.hooks);
    self.hooks.log = print_warning;
    int exit_code;
    if (options_parse(&convert_command, argc, argv, &values, &exit_code)) {
        exit_code = convert_values_check(&values);
        exit_code = exit_code == EXIT_DONE ? ask_model(&values, &self.model) : exit_code;
        if (exit_code == EXIT_DONE) {
            exit_code = values.list ? convert_list(values.json) : run(&self);
        }
    }
    model_answers_release(&self.model);
    options_release(&convert_command, &values);
    return exit_code;
}
