/* SPDX-License-Identifier: MIT */
/* Whole sources as a load. */
#include "base/memory.h"
#include "base/range.h"
#include "format/display_name.h"
#include "format/load_files.h"
#include "format/options.h"
#include "format/text.h"

/* Slices of a single source, unless the caller says. */
#define DEFAULT_SLICES 16

typedef struct load_source {
    eplb_source_text text;
    eplb_slices slices;
} load_source;

typedef struct load_job {
    eplb_hooks hooks;
    load_source *sources; /* [count] */
    int32_t count;
    int32_t slices; /* of each, at most */
    int32_t are_logical;
    eplb_load_files files;
    eplb_load_builder *builder;
} load_job;

void eplb_source_load_options_init(eplb_source_load_options *options)
{
    if (options != NULL) {
        *options = (eplb_source_load_options){.struct_size = sizeof(*options)};
    }
}

static eplb_status parse_sources(load_job *job, const char *const *texts, eplb_error *error)
{
    const char *reader = NULL; /* of standard input */
    for (int32_t i = 0; i < job->count; i++) {
        eplb_source_text *text = &job->sources[i].text;
        eplb_status status = texts[i] != NULL
                                 ? eplb_source_text_parse(text, &job->hooks, texts[i], error)
                                 : eplb_error_set(error, EPLB_ERROR_ARGUMENT, "load: no text");
        if (status != EPLB_OK) {
            return status;
        }
        for (int32_t f = 0; f < text->files; f++) {
            if (!eplb_is_standard_input(text->paths[f])) {
                continue;
            }
            if (reader != NULL) {
                return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                      "sources '%s' and '%s': standard input can be read once",
                                      eplb_display_name_of(reader).text,
                                      eplb_display_name_of(texts[i]).text);
            }
            reader = texts[i];
        }
    }
    return EPLB_OK;
}

static eplb_status resolve_slices(load_job *job, int32_t slices, eplb_error *error)
{
    eplb_status status =
        eplb_check_range("load", "number of slices", slices, 0, EPLB_MAX_SCENARIOS, error);
    job->slices = slices;
    for (int32_t i = 0; i < job->count && status == EPLB_OK && slices != 1; i++) {
        const char *stream = eplb_source_text_stream(&job->sources[i].text);
        if (slices == 0) {
            job->slices = job->count > 1 || stream != NULL ? 1 : DEFAULT_SLICES;
        } else if (stream != NULL) {
            status = eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                                    "%s: can be read only once, and %d slices need it twice",
                                    eplb_display_name_of(stream).text, slices);
        }
    }
    return status;
}

/* Says which files an error speaks of that knows scenarios only. */
static eplb_status name_sources(const load_job *job, eplb_status status, const eplb_error *inner,
                                eplb_error *error)
{
    if (status == EPLB_OK) {
        return EPLB_OK;
    }
    eplb_display_name first = eplb_display_name_of(job->sources[0].text.name);
    if (job->count == 1) {
        return eplb_error_set(error, status, "%s: %s", first.text, inner->message);
    }
    return eplb_error_set(error, status, "%s and %d more: %s", first.text, job->count - 1,
                          inner->message);
}

/* Gives each source its scenarios. */
static eplb_status cut_sources(load_job *job, int32_t *scenarios, eplb_error *error)
{
    *scenarios = 0;
    for (int32_t i = 0; i < job->count; i++) {
        load_source *source = &job->sources[i];
        source->slices = (eplb_slices){.count = 1, .first_scenario = *scenarios};
        if (job->slices > 1) {
            eplb_status status = eplb_load_files_survey(&job->files, &source->text, error);
            eplb_error inner;
            if (status == EPLB_OK) {
                status = eplb_slices_cut(&source->slices, &job->files.steps, job->slices, &inner);
                status = name_sources(job, status, &inner, error);
            }
            if (status != EPLB_OK) {
                return status;
            }
        }
        *scenarios += source->slices.count;
    }
    return EPLB_OK;
}

static eplb_status add_sources(load_job *job, eplb_error *error)
{
    eplb_status status = EPLB_OK;
    if (job->slices > 1) {
        job->files.hooks.log = NULL; /* the survey has warned */
    }
    for (int32_t i = 0; i < job->count && status == EPLB_OK; i++) {
        const load_source *source = &job->sources[i];
        status =
            eplb_load_files_add(&job->files, &source->text, &source->slices, job->builder, error);
    }
    return status;
}

/* Replaces a load of all hidden layers by one of those that are not dense. */
static eplb_status remove_dense(const eplb_hooks *hooks, eplb_load **load, eplb_error *error)
{
    int32_t layers = eplb_load_layers(*load);
    const int32_t *ids = eplb_load_layer_ids(*load);
    int32_t *dense = eplb_alloc(hooks, (size_t)layers, sizeof(*dense));
    if (dense == NULL) {
        return eplb_out_of_memory(error);
    }
    int32_t count = 0;
    for (int32_t l = 0; l < layers; l++) {
        if (eplb_load_layer_is_zero(*load, l)) {
            dense[count++] = ids[l];
        }
    }
    eplb_load *sparse = NULL;
    eplb_status status = eplb_load_set_layer_ids(*load, ids, ids[layers - 1] + 1, error);
    if (status == EPLB_OK && count > 0 && count < layers) {
        status = eplb_load_without_layers(&sparse, *load, dense, count, error);
    }
    eplb_free(hooks, dense);
    if (sparse != NULL) {
        eplb_load_destroy(load);
        *load = sparse;
    }
    return status;
}

/* Names the scenarios of a source and gives them their weight. */
static eplb_status set_scenarios(const load_source *source, const eplb_hooks *hooks,
                                 eplb_load *load, eplb_error *error)
{
    int32_t count = source->slices.count;
    eplb_status status = EPLB_OK;
    for (int32_t s = 0; s < count && status == EPLB_OK; s++) {
        eplb_text name = {.hooks = *hooks};
        eplb_text_add(&name, source->text.name);
        if (count > 1) {
            const int32_t part[] = {s + 1, count};
            eplb_text_add(&name, " ");
            eplb_text_add_list(&name, part, 2, "/");
        }
        status = name.failed
                     ? eplb_out_of_memory(error)
                     : eplb_load_set_scenario(load, source->slices.first_scenario + s, name.bytes,
                                              source->text.weight / count, error);
        eplb_text_clear(&name);
    }
    return status;
}

static eplb_status finish(const load_job *job, eplb_load **out, eplb_error *error)
{
    eplb_load *load = NULL;
    eplb_error inner;
    eplb_status status =
        eplb_load_builder_finish(job->builder, &load, job->files.options.experts, &inner);
    if (status == EPLB_OK && job->files.all_model_layers) {
        status = remove_dense(&job->hooks, &load, &inner);
    } else if (status == EPLB_OK && job->files.model_layers > 0) {
        status = eplb_load_set_layer_ids(load, eplb_load_layer_ids(load), job->files.model_layers,
                                         &inner);
    }
    for (int32_t i = 0; i < job->count && status == EPLB_OK; i++) {
        status = set_scenarios(&job->sources[i], &job->hooks, load, &inner);
    }
    if (status != EPLB_OK) {
        eplb_load_destroy(&load);
        return name_sources(job, status, &inner, error);
    }
    *out = load;
    return EPLB_OK;
}

static eplb_status run(load_job *job, eplb_load **out, eplb_error *error)
{
    int32_t scenarios;
    eplb_status status = cut_sources(job, &scenarios, error);
    if (status == EPLB_OK) {
        status = eplb_load_builder_create(&job->builder, &job->hooks, scenarios, error);
    }
    if (status == EPLB_OK) {
        status = add_sources(job, error);
    }
    return status == EPLB_OK ? finish(job, out, error) : status;
}

static void release(load_job *job)
{
    for (int32_t i = 0; job->sources != NULL && i < job->count; i++) {
        eplb_source_text_clear(&job->sources[i].text);
        eplb_free(&job->hooks, job->sources[i].slices.starts);
    }
    eplb_free(&job->hooks, job->sources);
    eplb_load_builder_destroy(&job->builder);
}

static eplb_status load_sources(load_job *job, const char *const *texts, int32_t slices,
                                const eplb_read_options *reading, eplb_load **out,
                                eplb_error *error)
{
    job->sources = eplb_alloc_zeroed(&job->hooks, (size_t)job->count, sizeof(*job->sources));
    if (job->sources == NULL) {
        return eplb_out_of_memory(error);
    }
    eplb_status status = parse_sources(job, texts, error);
    if (status == EPLB_OK) {
        status = resolve_slices(job, slices, error);
    }
    if (status == EPLB_OK) {
        status = eplb_load_files_init(&job->files, &job->hooks, reading, error);
    }
    if (status == EPLB_OK) {
        status = run(job, out, error);
        job->are_logical = job->files.are_logical ? 1 : 0;
        eplb_load_files_clear(&job->files);
    }
    return status;
}

eplb_status eplb_source_load(eplb_load **out, const eplb_hooks *hooks, const char *const *texts,
                             int32_t count, const eplb_read_options *reading,
                             const eplb_source_load_options *options, eplb_error *error)
{
    if (out != NULL) {
        *out = NULL;
    }
    if (out == NULL || texts == NULL || count < 1) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "load: no output or no sources");
    }
    eplb_source_load_options chosen;
    eplb_source_load_options_init(&chosen);
    if (options != NULL && !eplb_struct_in(&chosen, sizeof(chosen), options)) {
        return eplb_error_set(
            error, EPLB_ERROR_ARGUMENT,
            "load options without struct_size: see eplb_source_load_options_init");
    }
    eplb_read_options complete;
    eplb_status status = eplb_read_options_resolve(reading, &complete, error);
    load_job job = {.hooks = eplb_hooks_resolve(hooks), .count = count};
    if (status == EPLB_OK) {
        status = load_sources(&job, texts, chosen.slices, &complete, out, error);
    }
    if (status == EPLB_OK && chosen.are_logical != NULL) {
        *chosen.are_logical = job.are_logical;
    }
    release(&job);
    return status;
}
