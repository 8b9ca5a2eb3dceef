/* SPDX-License-Identifier: MIT */
/* The format to write: what --to says, else what the ending of --out stands for. */
#include <string.h>

#include "convert.h"
#include "message.h"

/* What a name's ending stands for. */
typedef struct ending {
    const char *text;
    const char *counts; /* formats; NULL: nothing of that kind is written so */
    const char *placement;
} ending;

static const ending endings[] = {
    {".csv", "csv", NULL},         {".jsonl", "jsonl", NULL}, {".npy", "npy", "omni"},
    {".json", "sglang", "sglang"}, {".yaml", NULL, "trtllm"}, {".yml", NULL, "trtllm"},
    {".npz", NULL, NULL},          {".pt", NULL, NULL},       {".bin", NULL, NULL},
    {".safetensors", NULL, NULL},
};

/* NULL: of a name without an ending, or with one that stands for nothing. */
static const ending *find_ending(const char *path)
{
    const char *text = strrchr(path, '.');
    for (size_t i = 0; text != NULL && i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (strcmp(text, endings[i].text) == 0) {
            return &endings[i];
        }
    }
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

/* A file whose name says something else would be taken for that. */
int convert_find_target(conversion *self)
{
    const char *out = self->values->out;
    if (ends_with(out, ".gz") || ends_with(out, ".zst")) {
        return usage_error(convert_command.name,
                           "--out '%s': files are not compressed: give --out - and pipe it into "
                           "gzip or zstd",
                           out);
    }
    if (self->to != NULL) {
        return EXIT_DONE;
    }
    const ending *found = find_ending(out);
    const char *format = self->is_placement ? "sglang" : "jsonl";
    if (found != NULL) {
        format = self->is_placement ? found->placement : found->counts;
    }
    if (format == NULL) {
        return usage_error(convert_command.name,
                           "--out '%s': %s are not written as %s: --to FORMAT says as what", out,
                           self->is_placement ? "placements" : "counts", found->text);
    }
    self->to = eplb_format_find(format);
    return EXIT_DONE;
}
