/* SPDX-License-Identifier: MIT */
#include "convert_options.h"

#include <string.h>

#include <eplb/eplb.h>

#include "load_reading.h"
#include "message.h"

#define AT(field) offsetof(convert_values, field)

static const char *const kinds[] = {"counts", "placement", NULL};

static const option options[] = {
    {"out", "FILE", "file to write; - is standard output", OPTION_OUTPUT, AT(out), 0, 0, NULL},
    {"to", "FORMAT",
     "format to write (default: the one that the ending of --out stands for, which is .csv, "
     ".jsonl, .npy or .json (sglang) for counts and .json (sglang), .yaml (trtllm) or .npy (omni) "
     "for placements; else jsonl for counts and sglang for placements; names of other kinds of "
     "files, such as .npz, are refused)",
     OPTION_TEXT, AT(to), 0, 0, NULL},
    {"from", "FORMAT", "format of the files (default: recognised by content)", OPTION_TEXT,
     AT(from), 0, 0, NULL},
    {"what", "counts|placement",
     "what the files are read as (default: what the content, --from and --to leave)", OPTION_CHOICE,
     AT(what), 0, 0, kinds},
    {"counted-under", "FILE", COUNTED_UNDER_HELP, OPTION_TEXT, AT(counting.counted_under), 0, 0,
     NULL},
    {"array", "NAME", ARRAY_HELP, OPTION_TEXT, AT(counting.array), 0, 0, NULL},
    {"gpus", "N", "GPUs that share a placement's slots evenly, where its file does not say it",
     OPTION_INT, AT(gpus), 1, EPLB_MAX_GPUS, NULL},
    {"experts", "N", "logical experts; files that contradict it are refused", OPTION_INT,
     AT(experts), 1, EPLB_MAX_EXPERTS, NULL},
    {"dense-layers", "LIST",
     "model layers that are dense, such as 0-2,60, or none: leads from the numbers of MoE layers "
     "to those of model layers and back",
     OPTION_IDS, AT(dense_layers), 0, EPLB_MAX_LAYERS - 1, NULL},
    {"model", "FILE",
     "config.json of the model (Hugging Face): says the experts and the dense layers; options win "
     "over it; files that contradict it are refused",
     OPTION_TEXT, AT(model), 0, 0, NULL},
    {"draft-layers", "N",
     "how many of the last layers of a placement are those of the draft model of speculative "
     "decoding (MTP); 0 makes layers of the model of them (default: as the file says, else 0)",
     OPTION_INT, AT(draft_layers), 0, EPLB_MAX_LAYERS - 1, NULL},
    {"without-draft-layers", NULL, "leave those layers out", OPTION_FLAG, AT(without_draft_layers),
     0, 0, NULL},
    {"list", NULL,
     "show all formats: what is read and written, by what they are recognised, and "
     "whose they are",
     OPTION_FLAG, AT(list), 0, 0, NULL},
    {"json", NULL, "print one JSON document instead of lines", OPTION_FLAG, AT(json), 0, 0, NULL},
};

const command convert_command = {
    .name = "convert",
    .usage = "(FILE... --out FILE [--to FORMAT] [OPTION...] | --list)",
    .notes =
        "Writes logged counts of tokens per expert, or a placement, in another format. Several "
        "files, or a directory, are counts of ranks, which are summed. Counts of slots become "
        "those of experts. What a format cannot carry, such as GPUs with different numbers of "
        "slots, or layers of a draft model, is refused. Arrays and sglang number the steps from 0; "
        "npy has the MoE layers without their numbers.",
    .example = "eplb convert counts.jsonl --to csv --out counts.csv",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .operand_list = "FILE",
    .operand_list_target = AT(files),
    .lists_formats = true,
};

const convert_values convert_values_default = {.what = NOT_GIVEN, .draft_layers = NOT_GIVEN};

const char *convert_placement_option_given(const convert_values *values)
{
    return values->draft_layers != NOT_GIVEN ? "draft-layers"
           : values->without_draft_layers    ? "without-draft-layers"
                                             : NULL;
}

/* Several files are read as one source, [NAME=]PATH[,PATH...][:WEIGHT]: the file in whose name a
 * character would be taken for a part of that; NULL: none. */
static const char *find_ambiguous(const text_list *files)
{
    bool may_be_name = true;
    for (int32_t f = 0; f < files->count; f++) {
        const char *file = files->items[f];
        size_t length = strcspn(file, "=/");
        const char *base = strrchr(file, '/');
        bool may_have_weight = f == files->count - 1;
        if (strchr(file, ',') != NULL || (may_be_name && file[length] == '=') ||
            (may_have_weight && strchr(base != NULL ? base : file, ':') != NULL)) {
            return file;
        }
        may_be_name = may_be_name && file[length] == '\0';
    }
    return NULL;
}

int convert_values_check(const convert_values *values)
{
    const char *name = convert_command.name;
    if (values->list) {
        return values->files.count == 0 && values->out == NULL
                   ? EXIT_DONE
                   : usage_error(name, "--list goes without FILE and --out");
    }
    if (values->files.count == 0) {
        return usage_error(name, "FILE is missing");
    }
    if (values->out == NULL) {
        return usage_error(name, "--out FILE is missing");
    }
    if (values->json && strcmp(values->out, "-") == 0) {
        return usage_error(name, "--json and --out -: both would go to standard output");
    }
    if (values->what == WHAT_PLACEMENT && values->files.count > 1) {
        return usage_error(name, "%d files: a placement is one file", values->files.count);
    }
    const char *of_placements = convert_placement_option_given(values);
    if (of_placements != NULL && values->what == WHAT_COUNTS) {
        return usage_error(name, "--%s is for placements", of_placements);
    }
    if (values->without_draft_layers && values->draft_layers == 0) {
        return usage_error(name, "--without-draft-layers leaves out what --draft-layers 0 keeps");
    }
    const char *ambiguous = values->files.count > 1 ? find_ambiguous(&values->files) : NULL;
    if (ambiguous != NULL) {
        return usage_error(name,
                           "'%s' among several files: '=', ',' or ':' in its name would not be "
                           "taken for a part of it; give the directory of the files",
                           ambiguous);
    }
    return counting_check(&values->counting, name);
}
