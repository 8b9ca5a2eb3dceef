/* SPDX-License-Identifier: MIT */
#include "validate_report.h"

#include <inttypes.h>
#include <string.h>

#include "draft_layers.h"
#include "message.h"
#include "output.h"
#include "wrap.h"

#define SHOWN 20 /* violations that people get to see */
#define KINDS 16 /* more than there are */

/* Where violations go. */
typedef struct listing {
    const validate_report *report;
    int64_t visited;
    int32_t kinds[KINDS]; /* each that was visited, once */
    int32_t kind_count;
    cJSON *list; /* NULL: lines for people */
} listing;

static void note_kind(listing *self, int32_t kind)
{
    for (int32_t i = 0; i < self->kind_count; i++) {
        if (self->kinds[i] == kind) {
            return;
        }
    }
    if (self->kind_count < KINDS) {
        self->kinds[self->kind_count++] = kind;
    }
}

/* A place in the map; null where the violation has none. */
static void add_place(cJSON *object, const char *name, int32_t value)
{
    json_add_known_integer(object, name, value >= 0, value);
}

static int add_to_json(void *context, const eplb_engine_violation *violation)
{
    listing *self = context;
    char text[160];
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kind", eplb_engine_violation_name(violation->kind));
    add_place(object, "layer", violation->layer_id);
    add_place(object, "gpu", violation->gpu);
    add_place(object, "slot", violation->slot);
    add_place(object, "expert", violation->expert);
    cJSON_AddStringToObject(
        object, "text",
        eplb_engine_violation_text(self->report->placement, violation, text, sizeof(text)));
    cJSON_AddItemToArray(self->list, object);
    note_kind(self, violation->kind);
    return 0;
}

static int print_line(void *context, const eplb_engine_violation *violation)
{
    listing *self = context;
    char text[160];
    if (self->visited++ < SHOWN) {
        puts(eplb_engine_violation_text(self->report->placement, violation, text, sizeof(text)));
    }
    note_kind(self, violation->kind);
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

static void print_verdict(const validate_report *self, int64_t violations)
{
    const char *before = self->engine != NULL ? " for " : "";
    const char *title = self->engine != NULL ? eplb_engine_title(self->engine) : "";
    if (violations > 0) {
        printf("INVALID%s%s: %" PRId64 " violation%s\n", before, title, violations,
               plural(violations));
        return;
    }
    int32_t layers = eplb_placement_layers(self->placement);
    int32_t experts = eplb_placement_experts(self->placement);
    int32_t gpus = eplb_cluster_gpus(eplb_placement_cluster(self->placement));
    char slots[48];
    char of_draft[48];
    printf(
        "valid%s%s: %d layer%s%s of %d expert%s on %d GPU%s x %s\n", before, title, layers,
        plural(layers),
        draft_layers_text(eplb_placement_draft_layers(self->placement), of_draft, sizeof(of_draft)),
        experts, plural(experts), gpus, plural(gpus),
        slots_of_gpus(self->placement, slots, sizeof(slots)));
}

static const eplb_engine *explained_engine(const validate_report *self)
{
    return self->engine != NULL ? self->engine : eplb_engine_of_format(self->format);
}

/* "duplicate: what the engine does", for each kind that was found. */
static void print_explanations(const listing *self)
{
    const eplb_engine *engine = explained_engine(self->report);
    for (int32_t i = 0; i < self->kind_count; i++) {
        const char *name = eplb_engine_violation_name(self->kinds[i]);
        const char *text = eplb_engine_explain(engine, self->kinds[i]);
        char unknown[96];
        snprintf(unknown, sizeof(unknown), "What %s does with it is not documented.",
                 engine != NULL ? eplb_engine_title(engine) : "an engine");
        printf("%s: ", name);
        write_wrapped(stdout, text != NULL ? text : unknown, (int)strlen(name) + 2, 2);
    }
}

static cJSON *list_explanations(const listing *self)
{
    cJSON *list = cJSON_CreateArray();
    for (int32_t i = 0; i < self->kind_count; i++) {
        const char *text = eplb_engine_explain(explained_engine(self->report), self->kinds[i]);
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "kind", eplb_engine_violation_name(self->kinds[i]));
        if (text != NULL) {
            cJSON_AddStringToObject(object, "text", text);
        } else {
            cJSON_AddNullToObject(object, "text");
        }
        cJSON_AddItemToArray(list, object);
    }
    return list;
}

static cJSON *describe(const validate_report *self)
{
    const eplb_placement *placement = self->placement;
    cJSON *document = json_begin("eplb.validate/1");
    json_add_text(document, "file", self->file);
    cJSON_AddStringToObject(document, "format", eplb_format_name(self->format));
    if (self->engine != NULL) {
        cJSON_AddStringToObject(document, "engine", eplb_engine_name(self->engine));
    } else {
        cJSON_AddNullToObject(document, "engine");
    }
    json_add_integer(document, "layers", eplb_placement_layers(placement));
    json_add_integer(document, "draft_layers", eplb_placement_draft_layers(placement));
    json_add_known_integer(document, "model_layers", self->model.layers > 0, self->model.layers);
    json_add_integer(document, "experts", eplb_placement_experts(placement));
    json_add_integer(document, "gpus", eplb_cluster_gpus(eplb_placement_cluster(placement)));
    json_add_integer(document, "slots", eplb_placement_slots(placement));
    return document;
}

static eplb_status check(const validate_report *self, listing *list, int64_t *violations,
                         eplb_error *error)
{
    list->report = self;
    return eplb_engine_check(self->engine, self->placement, &self->model,
                             list->list != NULL ? add_to_json : print_line, list, violations,
                             error);
}

int validate_print_json(const validate_report *self)
{
    eplb_error error;
    int64_t violations;
    cJSON *document = describe(self);
    listing list = {.list = cJSON_CreateArray()};
    if (check(self, &list, &violations, &error) != EPLB_OK) {
        cJSON_Delete(list.list);
        cJSON_Delete(document);
        return fail(&error);
    }
    cJSON_AddBoolToObject(document, "valid", violations == 0);
    json_add_integer(document, "violation_count", violations);
    cJSON_AddItemToObject(document, "violations", list.list);
    if (self->explain) {
        cJSON_AddItemToObject(document, "explanations", list_explanations(&list));
    }
    return json_finish(document, violations == 0 ? EXIT_DONE : EXIT_FAILED);
}

int validate_print_list(const validate_report *self)
{
    eplb_error error;
    int64_t violations;
    listing list = {.list = NULL};
    if (check(self, &list, &violations, &error) != EPLB_OK) {
        return fail(&error);
    }
    if (violations > SHOWN) {
        printf("... and %" PRId64 " more\n", violations - SHOWN);
    }
    if (self->explain) {
        print_explanations(&list);
    }
    print_verdict(self, violations);
    return output_finish(violations == 0 ? EXIT_DONE : EXIT_FAILED);
}
