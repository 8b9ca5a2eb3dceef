/* SPDX-License-Identifier: MIT */
/* Reads the files of sources, one after another, and makes sure that they are of one model. */
#ifndef EPLB_FORMAT_LOAD_FILES_H
#define EPLB_FORMAT_LOAD_FILES_H

#include "format/one_model.h"
#include "format/slices.h"
#include "format/source_text.h"

typedef struct eplb_load_files {
    eplb_hooks hooks;
    eplb_read_options options;
    bool all_model_layers;    /* every file so far lists them */
    int32_t model_layers;     /* as the files say; 0: none does, or they do not agree */
    eplb_row_width width;     /* of every file */
    eplb_ranks ranks;         /* of the source that is being read */
    bool *has_layer;          /* [options.max_layers], the layers of every file */
    const char *first_path;   /* the file that said so; NULL: none was read */
    int64_t *layer_rows;      /* [options.max_layers], of the file that is being read */
    eplb_step_list steps;     /* of the source that was read last, if asked for */
    eplb_step_list own_steps; /* of the file that is being read */
} eplb_load_files;

/* `options` are complete and checked. On failure nothing is left to clear. */
eplb_status eplb_load_files_init(eplb_load_files *self, const eplb_hooks *hooks,
                                 const eplb_read_options *options, eplb_error *error);
void eplb_load_files_clear(eplb_load_files *self);

/* Looks at all rows of a source and fills self->steps, sorted. */
eplb_status eplb_load_files_survey(eplb_load_files *self, const eplb_source_text *source,
                                   eplb_error *error);

/* Adds all rows of a source to the scenarios of its slices. Its files must have the same steps and,
 * when it was cut, those that the survey has found. */
eplb_status eplb_load_files_add(eplb_load_files *self, const eplb_source_text *source,
                                const eplb_slices *slices, eplb_load_builder *builder,
                                eplb_error *error);

#endif
