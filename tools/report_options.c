/* SPDX-License-Identifier: MIT */
#include "report_options.h"

#include <string.h>

#include <eplb/eplb.h>

#include "message.h"
#include "standard_input.h"

#define AT(field) offsetof(report_values, field)
#define MOST_TOKENS (1 << 30)

static const option options[] = {
    {"load", "SOURCE",
     "logged counts of tokens per expert, [NAME=]PATH[,PATH...][:WEIGHT]; several paths, or a "
     "directory, are ranks that are summed; - is standard input; may be given more than once: a "
     "report for each",
     OPTION_TEXTS, AT(loads), 0, 0, NULL},
    {"from", "FORMAT", "format of those files (default: recognised by content)", OPTION_TEXT,
     AT(from), 0, 0, NULL},
    {"counted-under", "FILE", COUNTED_UNDER_HELP, OPTION_TEXT, AT(counting.counted_under), 0, 0,
     NULL},
    {"array", "NAME", ARRAY_HELP, OPTION_TEXT, AT(counting.array), 0, 0, NULL},
    {"experts", "N", "logical experts of the model (default: as the files say)", OPTION_INT,
     AT(experts), 1, EPLB_MAX_EXPERTS, NULL},
    {"dense-layers", "LIST",
     "model layers without experts, such as 0-2, or none (default: where the files list all "
     "model layers, those without tokens)",
     OPTION_IDS, AT(dense_layers), 0, EPLB_MAX_LAYERS - 1, NULL},
    {"model", "FILE",
     "config.json of the model (Hugging Face): says the experts, the dense layers and the top-k; "
     "options win over it; files that contradict it are refused",
     OPTION_TEXT, AT(model), 0, 0, NULL},
    {"current", "FILE", "placement to judge, of any format that is read", OPTION_TEXT, AT(current),
     0, 0, NULL},
    {"gpus", "N",
     "GPUs that share the experts of a layer; without --current the experts are spread over them "
     "in order, as engines start",
     OPTION_INT, AT(gpus), 1, EPLB_MAX_GPUS, NULL},
    {"gpus-per-node", "N", "GPUs of a node (default: all on one node)", OPTION_INT,
     AT(gpus_per_node), 1, EPLB_MAX_GPUS, NULL},
    {"slots", "P", "without --current: slots of a layer (default: one for each expert)", OPTION_INT,
     AT(slots), 1, EPLB_MAX_SLOTS, NULL},
    {"redundant", "R", "or: redundant experts of a layer; P = experts + R", OPTION_INT,
     AT(redundant), 0, EPLB_MAX_SLOTS, NULL},
    {"topk", "K", "different experts that each token goes to: a step has assignments / K tokens",
     OPTION_INT, AT(topk), 1, EPLB_MAX_EXPERTS, NULL},
    {"tokens", "B",
     "or: tokens of a step, all ranks together; steps in which an expert got more are warned of",
     OPTION_INT, AT(tokens), 1, MOST_TOKENS, NULL},
    {"tile", "N", "rows of a tile that each expert's tokens are padded to (default 64)", OPTION_INT,
     AT(tile), 1, MOST_TOKENS, NULL},
    {"capacity-factor", "X",
     "show what an engine would drop of an expert's tokens beyond X times the fair share (default "
     "1.25)",
     OPTION_REAL, AT(capacity_factor), 0, 1000000, NULL},
    {"waits", "FILE",
     "measured waits of ranks in all-to-all, CSV: step,layer,rank,wait_us, with layers numbered as "
     "in the report",
     OPTION_TEXT, AT(waits), 0, 0, NULL},
    {"threads", "N", "threads that plan (default: the processors online, at most 8)", OPTION_INT,
     AT(threads), 1, 256, NULL},
    {"all", NULL, "show all layers, not only the worst", OPTION_FLAG, AT(all), 0, 0, NULL},
    {"json", NULL, "print one JSON document instead of the tables", OPTION_FLAG, AT(json), 0, 0,
     NULL},
};

const command report_command = {
    .name = "report",
    .usage = "--load SOURCE [--load SOURCE]... (--current FILE | --gpus N) [--topk K] [--tokens B] "
             "[OPTION...]",
    .notes =
        "Says what the steps of a log look like under a placement: how uneven the GPUs are, how "
        "much of that a placement can mend and how much is the noise of few tokens in a step, "
        "what spare slots would do, and what to do about it.",
    .example = "eplb report --load counts.jsonl --gpus 32 --topk 8",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .lists_formats = true,
};

const report_values report_values_default = {.tile = 64, .capacity_factor = 1.25};

static bool is_standard_input(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

int report_values_check(const report_values *values)
{
    const char *name = report_command.name;
    if (values->loads.count == 0) {
        return usage_error(name, "--load SOURCE is missing");
    }
    if (values->current == NULL && values->gpus == 0) {
        return usage_error(name, "say which placement to judge: --current FILE, or --gpus N for "
                                 "experts spread in order over N GPUs");
    }
    if (values->current != NULL && (values->slots > 0 || values->redundant > 0)) {
        return usage_error(name, "--current says the slots: --slots and --redundant go without it");
    }
    if (values->slots > 0 && values->redundant > 0) {
        return usage_error(name, "--slots and --redundant exclude each other");
    }
    if (values->waits != NULL && values->loads.count > 1) {
        return usage_error(name, "--waits are those of one run: give one --load with it");
    }
    bool several = values->loads.count > 1;
    if (uses_of_standard_input(&values->loads, values->current) > 1 ||
        (several && is_standard_input(values->current)) ||
        (is_standard_input(values->waits) &&
         uses_of_standard_input(&values->loads, values->current) > 0)) {
        return usage_error(name, "standard input can be read once");
    }
    return counting_check(&values->counting, name);
}
