/* SPDX-License-Identifier: MIT */
#include "sweep_options.h"

#include <eplb/eplb.h>

#include "load_reading.h"
#include "message.h"
#include "model_options.h"
#include "standard_input.h"

/* Plans of a sweep: more is a mistake in a range. */
#define MOST_COMBINATIONS 10000

#define AT(field) offsetof(sweep_values, field)

static const option options[] = {
    {"load", "SOURCE", SCENARIOS_HELP, OPTION_TEXTS, AT(loads), 0, 0, NULL},
    {"gpus", "LIST",
     "numbers of GPUs that share the experts of a layer, such as 8,16,32 or 8-64x2 (8, 16, 32, 64)",
     OPTION_IDS, AT(gpus), 1, EPLB_MAX_GPUS, NULL},
    {"redundant", "LIST",
     "numbers of redundant experts of a layer, such as 0,16,32 or 0-128+32 (0, 32, 64, 96, 128); "
     "what the GPUs cannot share evenly is rounded up",
     OPTION_IDS, AT(redundant), 0, EPLB_MAX_SLOTS, NULL},
    {"model", "FILE", MODEL_HELP, OPTION_TEXT, AT(model), 0, 0, NULL},
    {"expert-bytes", "SIZE", EXPERT_BYTES_HELP, OPTION_SIZE, AT(expert_bytes), 1, 0, NULL},
    {"slices", "N", SLICES_HELP, OPTION_INT, AT(slices), 1, EPLB_MAX_SCENARIOS, NULL},
    {"objective", "mean-of-max|max-of-max|sum", OBJECTIVE_HELP, OPTION_CHOICE, AT(objective), 0, 0,
     objective_choices},
    {"from", "FORMAT", "format of the counts (default: recognised by content)", OPTION_TEXT,
     AT(from), 0, 0, NULL},
    {"counted-under", "FILE", COUNTED_UNDER_HELP, OPTION_TEXT, AT(counting.counted_under), 0, 0,
     NULL},
    {"array", "NAME", ARRAY_HELP, OPTION_TEXT, AT(counting.array), 0, 0, NULL},
    {"experts", "N", "logical experts; files that contradict it are refused", OPTION_INT,
     AT(experts), 1, EPLB_MAX_EXPERTS, NULL},
    {"dense-layers", "LIST", DENSE_LAYERS_HELP, OPTION_IDS, AT(dense_layers), 0,
     EPLB_MAX_LAYERS - 1, NULL},
    {"effort", "1..9", "how long to search for each plan (default 3)", OPTION_INT, AT(effort), 1, 9,
     NULL},
    {"threads", "N", "threads that plan (default: the processors online, at most 8)", OPTION_INT,
     AT(threads), 1, 256, NULL},
    {"json", NULL, "print one JSON document instead of the table", OPTION_FLAG, AT(json), 0, 0,
     NULL},
};

const command sweep_command = {
    .name = "sweep",
    .usage = "--load SOURCE [--load SOURCE]... --gpus LIST --redundant LIST [--model FILE] "
             "[OPTION...]",
    .notes =
        "Says how many redundant experts are worth their memory: plans for each number of GPUs and "
        "of redundant experts, and prints the imbalance (busiest GPU / mean) on average over the "
        "layers, in the worst layer and in the worst scenario, a bound that no placement can beat, "
        "and the memory of the experts' weights on a GPU. Marked for each number of GPUs is the "
        "knee: the fewest redundant experts with which at most a tenth of what the range gains, or "
        "0.005, is left to gain.",
    .example = "eplb sweep --load counts.jsonl --gpus 16,32 --redundant 0-64+16",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .lists_formats = true,
};

const sweep_values sweep_values_default = {.effort = 3};

int sweep_values_check(const sweep_values *values)
{
    const char *name = sweep_command.name;
    if (values->loads.count == 0) {
        return usage_error(name, "--load SOURCE is missing");
    }
    if (values->gpus.count == 0) {
        return usage_error(name, "--gpus LIST is missing");
    }
    if (values->redundant.count == 0) {
        return usage_error(name, "--redundant LIST is missing");
    }
    int64_t combinations = (int64_t)values->gpus.count * values->redundant.count;
    if (combinations > MOST_COMBINATIONS) {
        return usage_error(name, "--gpus and --redundant: %lld combinations, at most %d",
                           (long long)combinations, MOST_COMBINATIONS);
    }
    if (uses_of_standard_input(&values->loads, NULL) > 1) {
        return usage_error(name, "--load: standard input can be read once");
    }
    return counting_check(&values->counting, name);
}
