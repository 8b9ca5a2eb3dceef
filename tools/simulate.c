/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <eplb/eplb.h>
#include <eplb/source.h>

#include "commands.h"
#include "message.h"
#include "options.h"
#include "output.h"

#define MOST_TOKENS (1 << 24)

typedef struct router_values {
    id_list batches;
    int32_t experts; /* 0: of the load, else 256 */
    int32_t topk;
    int32_t ranks;
    int32_t tile;
    int32_t trials;
    uint64_t seed;
    const char *load;
    int32_t layer; /* -1: the first */
    bool json;
} router_values;

#define AT(field) offsetof(router_values, field)

static const option options[] = {
    {"batch", "LIST", "tokens of a step, such as 8,64,256: a row for each", OPTION_IDS, AT(batches),
     1, MOST_TOKENS, NULL},
    {"experts", "N", "logical experts (default: as the load says, else 256)", OPTION_INT,
     AT(experts), 1, EPLB_MAX_EXPERTS, NULL},
    {"topk", "N", "different experts that each token goes to (default 8)", OPTION_INT, AT(topk), 1,
     EPLB_MAX_EXPERTS, NULL},
    {"ranks", "N", "ranks, with equal runs of expert ids each (default 8)", OPTION_INT, AT(ranks),
     1, EPLB_MAX_GPUS, NULL},
    {"tile", "N", "rows of a tile that each expert's tokens are padded to (default 64)", OPTION_INT,
     AT(tile), 1, MOST_TOKENS, NULL},
    {"trials", "N", "simulated steps of a row (default 10000)", OPTION_INT, AT(trials), 1,
     MOST_TOKENS, NULL},
    {"seed", "N", "number that all of it follows from (default 1)", OPTION_SEED, AT(seed), 0, 0,
     NULL},
    {"load", "FILE",
     "counts of tokens per expert: experts are drawn by their share of a layer (default: all "
     "alike)",
     OPTION_TEXT, AT(load), 0, 0, NULL},
    {"layer", "ID", "layer of that file (default: its first)", OPTION_INT, AT(layer), 0,
     EPLB_MAX_LAYERS - 1, NULL},
    {"json", NULL, "print one JSON document instead of the table", OPTION_FLAG, AT(json), 0, 0,
     NULL},
};

static const command router = {
    .name = "simulate router",
    .usage = "--batch LIST [--experts N] [--topk N] [--ranks N] [--tile N] [--load FILE "
             "[--layer ID]] [--trials N] [--seed N] [--json]",
    .notes = "Shows what a router's randomness alone does to the balance of ranks and to padding: "
             "what more tokens in a step can mend and no placement can. Each token goes to topk "
             "different experts. Imbalance is tokens of the busiest rank / mean; padded rows are "
             "the tokens of each expert, filled up to whole tiles.",
    .example = "eplb simulate router --batch 8,64,256,1024,4096 --experts 256 --topk 8 --ranks 8",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
};

/* The layer's row in the load; -1: it has no such layer. */
static int32_t find_layer(const eplb_load *load, int32_t id)
{
    for (int32_t l = 0; l < eplb_load_layers(load); l++) {
        if (id < 0 || eplb_load_layer_ids(load)[l] == id) {
            return l;
        }
    }
    return -1;
}

/* Reads the file, if one was given, and points the options at its popularities. */
static eplb_status read_popularity(router_values *values, eplb_load **load,
                                   eplb_router_options *simulation, eplb_error *error)
{
    *load = NULL;
    simulation->experts = values->experts > 0 ? values->experts : simulation->experts;
    if (values->load == NULL) {
        return EPLB_OK;
    }
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    hooks.log = print_warning;
    eplb_read_options reading;
    eplb_read_options_init(&reading);
    reading.experts = values->experts;
    eplb_source_load_options whole;
    eplb_source_load_options_init(&whole);
    whole.slices = 1;
    eplb_status status = eplb_source_load(load, &hooks, &values->load, 1, &reading, &whole, error);
    if (status != EPLB_OK) {
        return status;
    }
    int32_t layer = find_layer(*load, values->layer);
    if (layer < 0) {
        return eplb_error_set(error, EPLB_ERROR_DATA, "%s: no layer %d", values->load,
                              values->layer);
    }
    values->layer = eplb_load_layer_ids(*load)[layer];
    simulation->experts = eplb_load_experts(*load);
    simulation->popularity = eplb_load_row(*load, 0, layer);
    return EPLB_OK;
}

static void add_to_json(cJSON *rows, const eplb_router_result *r)
{
    cJSON *row = cJSON_CreateObject();
    json_add_integer(row, "batch", r->batch);
    cJSON_AddNumberToObject(row, "imbalance_mean", r->imbalance_mean);
    cJSON_AddNumberToObject(row, "imbalance_p99", r->imbalance_p99);
    cJSON_AddNumberToObject(row, "padded_worst_rank", r->padded_worst_rank);
    cJSON_AddNumberToObject(row, "padded_ratio", r->padded_ratio);
    cJSON_AddNumberToObject(row, "experts_touched", r->experts_touched);
    cJSON_AddNumberToObject(row, "weight_bytes_share_per_token", r->weight_bytes_share_per_token);
    cJSON_AddItemToArray(rows, row);
}

static int print_json(const eplb_router_options *simulation, const eplb_router_result *results,
                      int32_t count)
{
    cJSON *document = json_begin("eplb.simulate.router/1");
    json_add_integer(document, "experts", simulation->experts);
    json_add_integer(document, "topk", simulation->topk);
    json_add_integer(document, "ranks", simulation->ranks);
    json_add_integer(document, "tile", simulation->tile);
    json_add_integer(document, "trials", simulation->trials);
    cJSON_AddNumberToObject(document, "tokens_to_fill_tiles", results[0].tokens_to_fill_tiles);
    cJSON *rows = cJSON_AddArrayToObject(document, "rows");
    for (int32_t i = 0; i < count; i++) {
        add_to_json(rows, &results[i]);
    }
    return json_finish(document, EXIT_DONE);
}

static int print_table(const router_values *values, const eplb_router_options *simulation,
                       const eplb_router_result *results, int32_t count)
{
    printf("%d experts, each token to %d of them, on %d ranks; tiles of %d rows; ",
           simulation->experts, simulation->topk, simulation->ranks, simulation->tile);
    if (simulation->popularity != NULL) {
        printf("drawn by the tokens of layer %d.\n", values->layer);
    } else {
        puts("all experts alike.");
    }
    printf("%d simulated steps a row. Imbalance: busiest rank / mean; 1 is perfect.\n\n",
           simulation->trials);
    printf("%8s %10s %10s %12s %12s %9s %12s\n", "tokens", "imbalance", "imbalance",
           "padded rows:", "padded rows:", "experts", "weights read");
    printf("%8s %10s %10s %12s %12s %9s %12s\n", "a step", "mean", "p99", "worst rank", "all",
           "touched", "per token");
    for (int32_t i = 0; i < count; i++) {
        const eplb_router_result *r = &results[i];
        printf("%8d %10.3f %10.3f %11.2fx %11.2fx %8.1f%% %11.3f%%\n", r->batch, r->imbalance_mean,
               r->imbalance_p99, r->padded_worst_rank, r->padded_ratio, 100.0 * r->experts_touched,
               100.0 * r->weight_bytes_share_per_token);
    }
    printf("\nFrom %.0f tokens a step on an expert of mean load fills a tile; below, more tokens a "
           "step help and no placement does.\n",
           results[0].tokens_to_fill_tiles);
    return output_finish(EXIT_DONE);
}

static int simulate(router_values *values)
{
    eplb_error error;
    eplb_load *load;
    eplb_router_options simulation;
    eplb_router_options_init(&simulation);
    simulation.topk = values->topk;
    simulation.ranks = values->ranks;
    simulation.tile = values->tile;
    simulation.trials = values->trials;
    simulation.seed = values->seed;
    int32_t count = values->batches.count;
    eplb_router_result *results = calloc((size_t)count, sizeof(*results));
    eplb_status status = results != NULL
                             ? read_popularity(values, &load, &simulation, &error)
                             : eplb_error_set(&error, EPLB_ERROR_NOMEM, "out of memory");
    for (int32_t i = 0; i < count && status == EPLB_OK; i++) {
        results[i].struct_size = sizeof(results[i]);
        status =
            eplb_router_simulate(&results[i], NULL, &simulation, values->batches.items[i], &error);
    }
    int exit_code = status != EPLB_OK ? fail(&error)
                    : values->json    ? print_json(&simulation, results, count)
                                      : print_table(values, &simulation, results, count);
    if (results != NULL) {
        eplb_load_destroy(&load);
    }
    free(results);
    return exit_code;
}

static int command_router(int argc, char **argv)
{
    router_values values = {
        .topk = 8, .ranks = 8, .tile = 64, .trials = 10000, .seed = 1, .layer = -1};
    int exit_code;
    if (options_parse(&router, argc, argv, &values, &exit_code)) {
        if (values.batches.count == 0) {
            exit_code = usage_error(router.name, "--batch is missing");
        } else if (values.layer >= 0 && values.load == NULL) {
            exit_code = usage_error(router.name, "--layer goes with --load");
        } else {
            exit_code = simulate(&values);
        }
    }
    options_release(&router, &values);
    return exit_code;
}

int command_simulate(int argc, char **argv)
{
    if (argc < 1) {
        return usage_error("simulate", "say what to simulate: router");
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        return command_router(argc, argv);
    }
    if (strcmp(argv[0], "router") != 0) {
        return usage_error("simulate", "'%s' cannot be simulated: router can", argv[0]);
    }
    return command_router(argc - 1, argv + 1);
}
