/* SPDX-License-Identifier: MIT */
#include "output_format.h"

#include <string.h>

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

bool is_name_of_other(const char *path, bool is_placement)
{
    const ending *found = find_ending(path);
    return found != NULL && (is_placement ? found->placement == NULL && found->counts != NULL
                                          : found->counts == NULL && found->placement != NULL);
}

/* A file whose name says something else would be taken for that. */
int find_output_format(const char *command, const char *path, bool is_placement,
                       const eplb_format **format)
{
    if (ends_with(path, ".gz") || ends_with(path, ".zst")) {
        return usage_error(command,
                           "--out '%s': files are not compressed: give --out - and pipe it into "
                           "gzip or zstd",
                           path);
    }
    if (*format != NULL) {
        return EXIT_DONE;
    }
    const ending *found = find_ending(path);
    const char *name = is_placement ? "sglang" : "jsonl";
    if (found != NULL) {
        name = is_placement ? found->placement : found->counts;
    }
    if (name == NULL) {
        return usage_error(command,
                           "--out '%s': %s are not written as %s: --to FORMAT says as what", path,
                           is_placement ? "placements" : "counts", found->text);
    }
    *format = eplb_format_find(name);
    return EXIT_DONE;
}
