/* SPDX-License-Identifier: MIT */
#include "plan_options.h"

#include <string.h>

#include <eplb/plan.h>

#include "load_reading.h"
#include "message.h"
#include "model_options.h"
#include "pins.h"
#include "standard_input.h"

const char *const plan_algorithms[] = {"search", "eplb", "weighted", NULL};

/* In the order of the values of --hierarchy, --lost-experts, --ilp and --layer-budget. */
static const char *const hierarchies[] = {"none", "groups", NULL};
static const char *const lost_choices[] = {"load", "fail", NULL};
static const char *const ilp_choices[] = {"off", "auto", "on", NULL};
static const char *const layer_budgets[] = {"uniform", "adaptive", NULL};

#define AT(field) offsetof(plan_values, field)

static const option options[] = {
    {"load", "SOURCE", SCENARIOS_HELP, OPTION_TEXTS, AT(loads), 0, 0, NULL},
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
    {"draft-layers", "N",
     "how many of the last layers of the loads are those of the draft model of speculative "
     "decoding (MTP), which the placement says where its format can (default: as in --current, "
     "else 0)",
     OPTION_INT, AT(draft_layers), 0, EPLB_MAX_LAYERS - 1, NULL},
    {"model", "FILE", MODEL_HELP, OPTION_TEXT, AT(model), 0, 0, NULL},
    {"gpus", "N", "GPUs that share the experts of a layer", OPTION_INT, AT(gpus), 1, EPLB_MAX_GPUS,
     NULL},
    {"gpus-per-node", "N",
     "GPUs of a node (default: all on one node), for --spread-nodes, --hierarchy and --node-cost",
     OPTION_INT, AT(gpus_per_node), 1, EPLB_MAX_GPUS, NULL},
    {"slots", "P", "slots of a layer, all GPUs together", OPTION_INT, AT(slots), 1, EPLB_MAX_SLOTS,
     NULL},
    {"redundant", "R", "or: redundant experts of a layer; P = experts + R", OPTION_INT,
     AT(redundant), 0, EPLB_MAX_SLOTS, NULL},
    {"gpu-memory", "LIST",
     "or: as many slots as the memory of the GPUs holds, such as 80GiB, or one size for each GPU, "
     "such as 80GiB,80GiB,40GiB; then GPUs may have different numbers of slots",
     OPTION_SIZES, AT(gpu_memory), 1, 0, NULL},
    {"reserve", "SIZE",
     "of each GPU's memory, for all but the experts: other weights, cache, activations (default 0)",
     OPTION_SIZE, AT(reserve), 0, 0, NULL},
    {"expert-bytes", "SIZE", EXPERT_BYTES_HELP, OPTION_SIZE, AT(expert_bytes), 1, 0, NULL},
    {"layer-budget", "uniform|adaptive",
     "adaptive: layers may have different numbers of slots, more where they gain most, while what "
     "all layers have on a GPU stays within --gpu-memory, or --slots times the layers, shared "
     "evenly; only --to omni carries that (default uniform)",
     OPTION_CHOICE, AT(layer_budget), 0, 0, layer_budgets},
    {"current", "FILE",
     "placement in force: make it better by copies that pay for themselves; the options from here "
     "to --stall say which do",
     OPTION_TEXT, AT(current), 0, 0, NULL},
    {"target-imbalance", "X",
     "make the fewest copies that bring each layer to this imbalance, whatever they cost",
     OPTION_AMOUNT, AT(target_imbalance), 1, 1000000, NULL},
    {"max-copies", "N", "make at most so many in all, where they gain most, whatever they cost",
     OPTION_INT, AT(max_copies), 0, INT32_MAX, NULL},
    {"max-copies-per-layer", "N", "at most so many in a layer", OPTION_INT,
     AT(max_copies_per_layer), 0, INT32_MAX, NULL},
    {"max-copies-per-gpu", "N", "at most so many into a GPU in a layer", OPTION_INT,
     AT(max_copies_per_gpu), 0, INT32_MAX, NULL},
    {"min-gain", "X", "leave layers whose imbalance would not fall by as much (default 0)",
     OPTION_AMOUNT, AT(min_gain), 0, 1000000, NULL},
    {"copy-price", "X",
     "what a copy must take away from its layer's imbalance (default: what pays for its time "
     "within the interval, by the options that follow; 0: copies are free)",
     OPTION_AMOUNT, AT(copy_price), 0, 1000000, NULL},
    {"bandwidth", "INTRA,INTER", BANDWIDTH_HELP, OPTION_SIZES, AT(price.bandwidth), 1, 0, NULL},
    {"interval", "STEPS", INTERVAL_HELP, OPTION_INT, AT(price.interval), 1, INT32_MAX, NULL},
    {"step-time", "SECONDS", STEP_TIME_HELP, OPTION_REAL, AT(price.step_time), 0, 3600, NULL},
    {"stall", "SHARE", STALL_HELP, OPTION_AMOUNT, AT(price.stall), 0, 1, NULL},
    {"dead-gpus", "LIST", "GPUs that have failed, such as 3 or 8-15: they get nothing", OPTION_IDS,
     AT(dead_gpus), 0, EPLB_MAX_GPUS - 1, NULL},
    {"lost-experts", "load|fail",
     "experts of --current that only dead GPUs have: load their weights from storage (default), or "
     "fail",
     OPTION_CHOICE, AT(lost_experts), 0, 0, lost_choices},
    {"min-replicas", "N", "replicas that each expert has at least (default 1)", OPTION_INT,
     AT(min_replicas), 1, EPLB_MAX_GPUS, NULL},
    {"max-replicas", "N", "and at most (default: one on each live GPU)", OPTION_INT,
     AT(max_replicas), 1, EPLB_MAX_GPUS, NULL},
    {"spread-nodes", NULL,
     "put an expert's replicas on different nodes first; needs --gpus-per-node", OPTION_FLAG,
     AT(spread_nodes), 0, 0, NULL},
    {"pin", "LAYER:EXPERT:GPU",
     "a replica that must be there, such as 3:17:0; LAYER (its number in the loads) and GPU may be "
     "all; may be given more than once",
     OPTION_TEXTS, AT(pins), 0, 0, NULL},
    {"algorithm", "search|eplb|weighted",
     "search; eplb: the classical algorithm, for comparison; weighted: for engines that can weight "
     "replicas, perfect balance under --weights; needs slots for one expert more on each GPU "
     "(default search)",
     OPTION_CHOICE, AT(algorithm), 0, 0, plan_algorithms},
    {"hierarchy", "none|groups",
     "groups: keep all replicas of each of --groups equal runs of experts on one node; the report "
     "says what it costs (default none)",
     OPTION_CHOICE, AT(hierarchy), 0, 0, hierarchies},
    {"groups", "N", "number of those groups; needs --gpus-per-node", OPTION_INT, AT(groups), 1,
     EPLB_MAX_EXPERTS, NULL},
    {"node-cost", "C",
     "price of a token that leaves its node, in units of an expert's work for a token: shows "
     "balance against traffic, and takes for each layer the placement with the least imbalance + C "
     "x share of tokens that leave (default: traffic does not matter)",
     OPTION_AMOUNT, AT(node_cost), 0, (int32_t)EPLB_MAX_NODE_COST, NULL},
    {"repair", NULL,
     "mend a plan that puts an expert twice on a GPU, as eplb can; only valid plans are written",
     OPTION_FLAG, AT(repair), 0, 0, NULL},
    {"effort", "1..9", "how long to search (default 5)", OPTION_INT, AT(effort), 1, 9, NULL},
    {"ilp", "off|auto|on",
     "exact optimisation with GLPK after the search: auto for layers small enough to be proven "
     "optimal, on for all, and for the fewest copies with --target-imbalance; it takes up to "
     "seconds a layer and the report says what it gained (default off)",
     OPTION_CHOICE, AT(ilp), 0, 0, ilp_choices},
    {"ilp-nodes", "N", "how many nodes of search trees a layer may take then (default 5000000)",
     OPTION_INT, AT(ilp_nodes), 0, INT32_MAX, NULL},
    {"threads", "N",
     "threads that plan (default: the processors online, at most 8); the plan does not depend on "
     "it",
     OPTION_INT, AT(threads), 1, 256, NULL},
    {"out", "FILE", "file to write the placement to; - is standard output", OPTION_OUTPUT, AT(out),
     0, 0, NULL},
    {"to", "FORMAT",
     "format of that file (default: the one that its name's ending stands for, which is .json "
     "(sglang), .yaml (trtllm) or .npy (omni); else sglang; names of other kinds of files, such as "
     ".npz, are refused)",
     OPTION_TEXT, AT(to), 0, 0, NULL},
    {"weights", "FILE",
     "file to write the best weights of replicas to, for the sum of the scenarios: CSV of layer, "
     "slot, gpu, expert, weight; - is standard output",
     OPTION_OUTPUT, AT(weights), 0, 0, NULL},
    {"json", NULL, "print one JSON document instead of the table", OPTION_FLAG, AT(json), 0, 0,
     NULL},
    {"detailed-exitcode", NULL,
     "exit with 10 when the plan proposes changes (without --current it always does)", OPTION_FLAG,
     AT(detailed_exitcode), 0, 0, NULL},
};

const command plan_command = {
    .name = "plan",
    .usage =
        "--load SOURCE [--load SOURCE]... --gpus N (--slots P | --redundant R | --gpu-memory LIST "
        "(--expert-bytes SIZE | --model FILE)) [--current FILE] [--out FILE [--to FORMAT]] "
        "[OPTION...]",
    .notes =
        "Decides how many replicas each expert gets and which GPU holds each, so that the busiest "
        "GPU of every layer has as little load as can be. Prints the imbalance (busiest GPU / "
        "mean) "
        "of the worst layers beside a bound that no placement can beat, and writes the placement "
        "in "
        "the form that a serving engine loads. With --current it proposes only copies that pay "
        "for themselves until the next rebalance.",
    .example = "eplb plan --load counts.jsonl --gpus 32 --redundant 32 --out map.json --to sglang",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .lists_formats = true,
};

const plan_values plan_values_default = {
    .draft_layers = NOT_GIVEN,
    .slots = NOT_GIVEN,
    .redundant = NOT_GIVEN,
    .target_imbalance = NOT_GIVEN,
    .max_copies = NOT_GIVEN,
    .max_copies_per_layer = NOT_GIVEN,
    .max_copies_per_gpu = NOT_GIVEN,
    .min_gain = NOT_GIVEN,
    .copy_price = NOT_GIVEN,
    .price.stall = NOT_GIVEN,
    .groups = NOT_GIVEN,
    .node_cost = NOT_GIVEN,
    .min_replicas = 1,
    .max_replicas = -1,
    .effort = 5,
    .ilp_nodes = NOT_GIVEN,
};

static int check_nodes(const plan_values *values)
{
    const char *name = plan_command.name;
    bool has_groups = values->groups != NOT_GIVEN;
    if (has_groups && values->hierarchy != HIERARCHY_GROUPS &&
        values->algorithm != EPLB_ALGORITHM_EPLB) {
        return usage_error(name, "--groups needs --hierarchy groups or --algorithm eplb");
    }
    if (!has_groups && values->hierarchy == HIERARCHY_GROUPS) {
        return usage_error(name, "--hierarchy groups needs --groups N");
    }
    if (values->gpus_per_node > 0) {
        return EXIT_DONE;
    }
    if (has_groups || values->spread_nodes || values->node_cost >= 0.0) {
        return usage_error(name, "--%s needs --gpus-per-node",
                           has_groups             ? "groups"
                           : values->spread_nodes ? "spread-nodes"
                                                  : "node-cost");
    }
    return EXIT_DONE;
}

static bool is_standard_output(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

/* Weights balance placements that keep no other rules. */
static int check_weighted(const plan_values *values)
{
    const char *rule = values->pins.count > 0                ? "pin"
                       : values->min_replicas > 1            ? "min-replicas"
                       : values->max_replicas != -1          ? "max-replicas"
                       : values->spread_nodes                ? "spread-nodes"
                       : values->node_cost >= 0.0            ? "node-cost"
                       : values->hierarchy != HIERARCHY_NONE ? "hierarchy"
                                                             : NULL;
    return values->algorithm == ALGORITHM_WEIGHTED && rule != NULL
               ? usage_error(plan_command.name, "--algorithm weighted and --%s exclude each other",
                             rule)
               : EXIT_DONE;
}

/* Standard output has room for one document. */
static int check_outputs(const plan_values *values)
{
    bool wants_out = is_standard_output(values->out);
    bool wants_weights = is_standard_output(values->weights);
    if (values->json && (wants_out || wants_weights)) {
        return usage_error(plan_command.name, "--json and --%s - both want standard output",
                           wants_out ? "out" : "weights");
    }
    if (wants_out && wants_weights) {
        return usage_error(plan_command.name, "--out - and --weights - both want standard output");
    }
    if (values->out != NULL && values->weights != NULL &&
        strcmp(values->out, values->weights) == 0) {
        return usage_error(plan_command.name, "--out and --weights are one file: '%s'",
                           values->out);
    }
    return EXIT_DONE;
}

/* The slots are given in one of three ways. */
static int check_slots(const plan_values *values)
{
    const char *name = plan_command.name;
    bool has_slots = values->slots != NOT_GIVEN;
    bool has_redundant = values->redundant != NOT_GIVEN;
    bool has_memory = values->gpu_memory.items != NULL;
    if (!has_slots && !has_redundant && !has_memory) {
        return usage_error(name, "--slots P, --redundant R or --gpu-memory LIST is missing");
    }
    if (has_slots && has_redundant) {
        return usage_error(name, "--slots and --redundant exclude each other");
    }
    if (has_memory && (has_slots || has_redundant)) {
        return usage_error(name, "--%s and --gpu-memory exclude each other",
                           has_slots ? "slots" : "redundant");
    }
    if (has_memory && values->gpu_memory.count != 1 && values->gpu_memory.count != values->gpus) {
        return usage_error(name, "--gpu-memory: %d sizes for %d GPUs: give one, or one for each",
                           values->gpu_memory.count, values->gpus);
    }
    if (has_memory && values->expert_bytes == 0 && values->model == NULL) {
        return usage_error(name, "--gpu-memory needs --expert-bytes SIZE or --model FILE");
    }
    if (!has_memory && values->reserve > 0) {
        return usage_error(name, "--reserve goes with --gpu-memory");
    }
    return EXIT_DONE;
}

/* Exact optimisation knows the balance of GPUs under an even split only. */
static int check_ilp(const plan_values *values)
{
    const char *name = plan_command.name;
    if (values->ilp == ILP_OFF) {
        return values->ilp_nodes == NOT_GIVEN
                   ? EXIT_DONE
                   : usage_error(name, "--ilp-nodes goes with --ilp auto or on");
    }
    const char *other = values->algorithm == EPLB_ALGORITHM_EPLB  ? "algorithm eplb"
                        : values->algorithm == ALGORITHM_WEIGHTED ? "algorithm weighted"
                        : values->hierarchy == HIERARCHY_GROUPS   ? "hierarchy groups"
                        : values->spread_nodes                    ? "spread-nodes"
                        : values->node_cost >= 0.0                ? "node-cost"
                                                                  : NULL;
    return other == NULL ? EXIT_DONE : usage_error(name, "--ilp does not go with --%s", other);
}

/* Layers that differ need slots to share, and nothing that needs them alike. */
static int check_layer_budget(const plan_values *values)
{
    const char *name = plan_command.name;
    if (values->layer_budget != BUDGET_ADAPTIVE) {
        return EXIT_DONE;
    }
    if (values->redundant != NOT_GIVEN) {
        return usage_error(name, "--layer-budget adaptive goes with --gpu-memory or --slots");
    }
    const char *other = values->algorithm == EPLB_ALGORITHM_EPLB  ? "algorithm eplb"
                        : values->algorithm == ALGORITHM_WEIGHTED ? "algorithm weighted"
                        : values->node_cost >= 0.0                ? "node-cost"
                        : values->hierarchy == HIERARCHY_GROUPS   ? "hierarchy groups"
                                                                  : NULL;
    if (other != NULL) {
        return usage_error(name, "--layer-budget adaptive and --%s exclude each other", other);
    }
    return EXIT_DONE;
}

/* What decides beside balance, and plans afresh; NULL: nothing. */
static const char *other_rule(const plan_values *values)
{
    return values->algorithm == EPLB_ALGORITHM_EPLB  ? "algorithm eplb"
           : values->algorithm == ALGORITHM_WEIGHTED ? "algorithm weighted"
           : values->hierarchy == HIERARCHY_GROUPS   ? "hierarchy groups"
           : values->spread_nodes                    ? "spread-nodes"
           : values->node_cost >= 0.0                ? "node-cost"
           : values->layer_budget == BUDGET_ADAPTIVE ? "layer-budget adaptive"
                                                     : NULL;
}

bool plan_rebalances(const plan_values *values)
{
    return values->current != NULL && other_rule(values) == NULL;
}

const char *plan_rebalance_option_given(const plan_values *values)
{
    return values->target_imbalance >= 0.0     ? "target-imbalance"
           : values->max_copies >= 0           ? "max-copies"
           : values->max_copies_per_layer >= 0 ? "max-copies-per-layer"
           : values->max_copies_per_gpu >= 0   ? "max-copies-per-gpu"
           : values->min_gain >= 0.0           ? "min-gain"
           : values->copy_price >= 0.0         ? "copy-price"
                                               : price_option_given(&values->price);
}

static int check_rebalance(const plan_values *values)
{
    const char *name = plan_command.name;
    const char *given = plan_rebalance_option_given(values);
    if (given != NULL && values->current == NULL) {
        return usage_error(name, "--%s goes with --current", given);
    }
    if (given != NULL && !plan_rebalances(values)) {
        return usage_error(name, "--%s and --%s exclude each other", given, other_rule(values));
    }
    return price_values_check(&values->price, name);
}

static int check_pins(const plan_values *values)
{
    pin_text pin;
    for (int32_t i = 0; i < values->pins.count; i++) {
        if (!parse_pin(values->pins.items[i], &pin)) {
            return usage_error(plan_command.name,
                               "--pin '%s': not LAYER:EXPERT:GPU, numbers, or all for LAYER or GPU",
                               values->pins.items[i]);
        }
    }
    return EXIT_DONE;
}

int plan_values_check(const plan_values *values)
{
    const char *name = plan_command.name;
    if (values->loads.count == 0) {
        return usage_error(name, "--load SOURCE is missing");
    }
    if (values->gpus == 0) {
        return usage_error(name, "--gpus N is missing");
    }
    int exit_code = check_slots(values);
    if (exit_code != EXIT_DONE) {
        return exit_code;
    }
    exit_code = check_nodes(values);
    if (exit_code == EXIT_DONE) {
        exit_code = check_layer_budget(values);
    }
    if (exit_code != EXIT_DONE) {
        return exit_code;
    }
    exit_code = check_ilp(values);
    if (exit_code != EXIT_DONE) {
        return exit_code;
    }
    if (values->lost_experts == LOST_FAIL && values->current == NULL) {
        return usage_error(name, "--lost-experts goes with --current");
    }
    if (values->dead_gpus.count > 0 &&
        values->dead_gpus.items[values->dead_gpus.count - 1] >= values->gpus) {
        return usage_error(name, "--dead-gpus: there is no GPU %d of %d",
                           values->dead_gpus.items[values->dead_gpus.count - 1], values->gpus);
    }
    if (values->to != NULL && values->out == NULL) {
        return usage_error(name, "--to '%s' needs --out FILE", values->to);
    }
    if (uses_of_standard_input(&values->loads, values->current) > 1) {
        return usage_error(name, "--load and --current: standard input can be read once");
    }
    exit_code = counting_check(&values->counting, name);
    if (exit_code == EXIT_DONE) {
        exit_code = check_rebalance(values);
    }
    if (exit_code == EXIT_DONE) {
        exit_code = check_outputs(values);
    }
    if (exit_code != EXIT_DONE) {
        return exit_code;
    }
    exit_code = check_weighted(values);
    return exit_code == EXIT_DONE ? check_pins(values) : exit_code;
}
