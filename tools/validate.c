/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "commands.h"
#include "formats.h"
#include "message.h"
#include "options.h"
#include "output.h"

#define SHOWN 20 /* violations that people get to see */

typedef struct validate_values {
    const char *file;
    const char *from;
    int32_t gpus;
    int32_t gpus_per_node;
    int32_t experts;
    bool json;
} validate_values;

#define AT(field) offsetof(validate_values, field)

static const option options[] = {
    {"gpus", "N", "GPUs that share the slots evenly; may be left out where the file says it",
     OPTION_INT, AT(gpus), 1, EPLB_MAX_GPUS, NULL},
    {"gpus-per-node", "N", "GPUs of a node (default: all on one node)", OPTION_INT,
     AT(gpus_per_node), 1, EPLB_MAX_GPUS, NULL},
    {"experts", "N", "logical experts of a layer (default: one more than the largest in the file)",
     OPTION_INT, AT(experts), 1, EPLB_MAX_EXPERTS, NULL},
    {"from", "FORMAT", "format of the file (default: recognised by content)", OPTION_TEXT, AT(from),
     0, 0, NULL},
    {"json", NULL, "print one JSON document instead of the list", OPTION_FLAG, AT(json), 0, 0,
     NULL},
};

static const command validate = {
    .name = "validate",
    .usage = "FILE --gpus N [--gpus-per-node N] [--experts N] [--from FORMAT] [--json]",
    .notes = "Checks a placement: every expert has a replica in every layer, no expert is twice on "
             "a GPU, every slot is filled. Engines compute wrong outputs or fail with maps that "
             "break these rules. Exits with 0 when the placement is valid and 1 when it is not.",
    .example = "eplb validate map.json --gpus 32 --experts 256",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .operands = {"FILE"},
    .operand_targets = {AT(file)},
    .lists_formats = true,
};

/* Where violations go. */
typedef struct listing {
    const eplb_placement *placement;
    int64_t visited;
    cJSON *list; /* NULL: lines for people */
} listing;

static const char *kind_name(int32_t kind)
{
    static const char *const names[] = {
        [EPLB_VIOLATION_MISSING_EXPERT] = "missing_expert",
        [EPLB_VIOLATION_DUPLICATE] = "duplicate",
        [EPLB_VIOLATION_EMPTY_SLOT] = "empty_slot",
        [EPLB_VIOLATION_DEAD_GPU] = "dead_gpu",
        [EPLB_VIOLATION_CLOSED_SLOT] = "closed_slot",
    };
    return names[kind];
}

/* A place in the map; null where the violation has none. */
static void add_place(cJSON *object, const char *name, int32_t value)
{
    if (value >= 0) {
        json_add_integer(object, name, value);
    } else {
        cJSON_AddNullToObject(object, name);
    }
}

static int add_to_json(void *context, const eplb_violation *violation)
{
    listing *self = context;
    char text[160];
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kind", kind_name(violation->kind));
    json_add_integer(object, "layer", eplb_placement_layer_ids(self->placement)[violation->layer]);
    add_place(object, "gpu", violation->gpu);
    add_place(object, "slot", violation->slot);
    add_place(object, "expert", violation->expert);
    cJSON_AddStringToObject(object, "text",
                            eplb_violation_text(self->placement, violation, text, sizeof(text)));
    cJSON_AddItemToArray(self->list, object);
    return 0;
}

static int print_line(void *context, const eplb_violation *violation)
{
    listing *self = context;
    char text[160];
    if (self->visited++ < SHOWN) {
        puts(eplb_violation_text(self->placement, violation, text, sizeof(text)));
    }
    return 0;
}

/* "9", or "3 to 4" where GPUs or layers differ. */
static char *slots_of_gpus(const eplb_placement *placement, char *text, size_t size)
{
    int32_t fewest = INT32_MAX;
    int32_t most = 0;
    for (int32_t l = 0; l < eplb_placement_layers(placement); l++) {
        for (int32_t g = 0; g < eplb_cluster_gpus(eplb_placement_cluster(placement)); g++) {
            int32_t slots = eplb_placement_open_slots_on(placement, l, g);
            fewest = slots < fewest ? slots : fewest;
            most = slots > most ? slots : most;
        }
    }
    if (fewest < most) {
        snprintf(text, size, "%" PRId32 " to %" PRId32 " slots", fewest, most);
    } else {
        snprintf(text, size, "%" PRId32 " slot%s", most, plural(most));
    }
    return text;
}

static void print_verdict(const eplb_placement *placement, int64_t violations)
{
    if (violations > SHOWN) {
        printf("... and %" PRId64 " more\n", violations - SHOWN);
    }
    if (violations > 0) {
        printf("INVALID: %" PRId64 " violation%s\n", violations, plural(violations));
        return;
    }
    int32_t layers = eplb_placement_layers(placement);
    int32_t experts = eplb_placement_experts(placement);
    int32_t gpus = eplb_cluster_gpus(eplb_placement_cluster(placement));
    char slots[48];
    printf("valid: %d layer%s of %d expert%s on %d GPU%s x %s\n", layers, plural(layers), experts,
           plural(experts), gpus, plural(gpus), slots_of_gpus(placement, slots, sizeof(slots)));
}

static cJSON *describe(const validate_values *values, const eplb_placement *placement,
                       const eplb_format *format)
{
    cJSON *document = json_begin("eplb.validate/1");
    json_add_text(document, "file", values->file);
    cJSON_AddStringToObject(document, "format", eplb_format_name(format));
    json_add_integer(document, "layers", eplb_placement_layers(placement));
    json_add_integer(document, "experts", eplb_placement_experts(placement));
    json_add_integer(document, "gpus", eplb_cluster_gpus(eplb_placement_cluster(placement)));
    json_add_integer(document, "slots", eplb_placement_slots(placement));
    return document;
}

static int print_json(const validate_values *values, const eplb_placement *placement,
                      const eplb_format *format)
{
    eplb_error error;
    int64_t violations;
    cJSON *document = describe(values, placement, format);
    listing list = {.placement = placement, .list = cJSON_CreateArray()};
    if (eplb_placement_check(placement, 0, add_to_json, &list, &violations, &error) != EPLB_OK) {
        cJSON_Delete(list.list);
        cJSON_Delete(document);
        return fail(&error);
    }
    cJSON_AddBoolToObject(document, "valid", violations == 0);
    json_add_integer(document, "violation_count", violations);
    cJSON_AddItemToObject(document, "violations", list.list);
    return json_finish(document, violations == 0 ? EXIT_DONE : EXIT_FAILED);
}

static int print_list(const eplb_placement *placement)
{
    eplb_error error;
    int64_t violations;
    listing list = {.placement = placement};
    if (eplb_placement_check(placement, 0, print_line, &list, &violations, &error) != EPLB_OK) {
        return fail(&error);
    }
    print_verdict(placement, violations);
    return output_finish(violations == 0 ? EXIT_DONE : EXIT_FAILED);
}

static int read_file(const validate_values *values, const eplb_format *from,
                     eplb_placement **placement, const eplb_format **format)
{
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    hooks.log = print_warning;
    eplb_read_options reading = reading_options(from, values->experts);
    reading.gpus = values->gpus;
    reading.gpus_per_node = values->gpus_per_node;
    eplb_error error;
    eplb_status status =
        eplb_placement_read(placement, &hooks, values->file, &reading, format, &error);
    if (status == EPLB_ERROR_ARGUMENT && values->gpus == 0) {
        return usage_error(validate.name, "%s with --gpus N", error.message);
    }
    return status == EPLB_OK ? EXIT_DONE : fail(&error);
}

static int run(const validate_values *values)
{
    const eplb_format *from;
    const eplb_format *format;
    eplb_placement *placement = NULL;
    int exit_code = find_format(validate.name, "from", values->from,
                                EPLB_FORMAT_READS_PLACEMENT | EPLB_FORMAT_WRITES_PLACEMENT, &from);
    if (exit_code == EXIT_DONE) {
        exit_code = read_file(values, from, &placement, &format);
    }
    if (exit_code == EXIT_DONE) {
        exit_code = values->json ? print_json(values, placement, format) : print_list(placement);
    }
    eplb_placement_destroy(&placement);
    return exit_code;
}

int command_validate(int argc, char **argv)
{
    validate_values values = {0};
    int exit_code;
    if (options_parse(&validate, argc, argv, &values, &exit_code)) {
        exit_code = run(&values);
    }
    options_release(&validate, &values);
    return exit_code;
}
