/* SPDX-License-Identifier: MIT */
#include "base/abi.h"
#include "format/engine.h"

typedef struct checker {
    const eplb_engine *engine; /* NULL: none */
    const eplb_placement *placement;
    int (*visit)(void *context, const eplb_engine_violation *violation);
    void *context;
    int64_t count;
    bool stopped;
} checker;

static void report(checker *check, const eplb_engine_violation *violation)
{
    if (!check->stopped) {
        check->count++;
        check->stopped = check->visit != NULL && check->visit(check->context, violation) != 0;
    }
}

/* A violation of the whole placement. */
static eplb_engine_violation whole(eplb_engine_violation_kind kind)
{
    return (eplb_engine_violation){
        .kind = (int32_t)kind, .layer = -1, .layer_id = -1, .gpu = -1, .slot = -1, .expert = -1};
}

static void report_number(checker *check, eplb_engine_violation_kind kind, int32_t actual,
                          int32_t expected)
{
    eplb_engine_violation violation = whole(kind);
    violation.actual = actual;
    violation.expected = expected;
    report(check, &violation);
}

static void check_limits(checker *check)
{
    int32_t experts = eplb_placement_experts(check->placement);
    int32_t slots = eplb_placement_slots(check->placement);
    if (check->engine->max_experts > 0 && experts > check->engine->max_experts) {
        report_number(check, EPLB_ENGINE_EXPERT_LIMIT, experts, check->engine->max_experts);
    }
    if (check->engine->max_slots > 0 && slots > check->engine->max_slots) {
        report_number(check, EPLB_ENGINE_SLOT_LIMIT, slots, check->engine->max_slots);
    }
}

/* The draft model's are beside the layers of the model. */
static int32_t model_rows(const eplb_placement *placement)
{
    return eplb_placement_layers(placement) - eplb_placement_draft_layers(placement);
}

static void check_layer_count(checker *check, int32_t expected)
{
    int32_t layers = model_rows(check->placement);
    bool one_for_all = check->engine->rows == EPLB_ROWS_OR_ONE && layers == 1;
    if (layers != expected && !one_for_all) {
        report_number(check, EPLB_ENGINE_LAYER_COUNT, layers, expected);
    }
}

/* One layer number that the rows have and the model's MoE layers have not, or the reverse. */
static void report_layer(checker *check, int32_t row, int32_t id)
{
    eplb_engine_violation violation =
        whole(row >= 0 ? EPLB_ENGINE_OTHER_LAYER : EPLB_ENGINE_MISSING_LAYER);
    violation.layer = row;
    violation.layer_id = id;
    report(check, &violation);
}

/* Goes through the rows, the dense layers and all layers of the model, which all ascend. */
static void check_layer_ids(checker *check, const eplb_engine_model *model)
{
    const int32_t *ids = eplb_placement_layer_ids(check->placement);
    int32_t rows = model_rows(check->placement);
    int32_t row = 0;
    int32_t dense = 0;
    for (int32_t id = 0; id < model->layers; id++) {
        bool has_row = row < rows && ids[row] == id;
        bool is_dense = dense < model->dense_count && model->dense_layers[dense] == id;
        if (has_row == is_dense) {
            report_layer(check, has_row ? row : -1, id);
        }
        row += has_row ? 1 : 0;
        dense += is_dense ? 1 : 0;
    }
    for (; row < rows; row++) {
        report_layer(check, row, ids[row]);
    }
}

static void check_layers(checker *check, const eplb_engine_model *model)
{
    if (model->layers == 0) {
        return;
    }
    if (check->engine->rows == EPLB_ROWS_BY_ID) {
        check_layer_ids(check, model);
    } else {
        check_layer_count(check, check->engine->rows == EPLB_ROWS_ALL_LAYERS
                                     ? model->layers
                                     : model->layers - model->dense_count);
    }
}

/* The first GPU of each layer that differs from GPU 0: the engine cuts rows into equal parts. */
static void check_even(checker *check)
{
    int32_t gpus = eplb_cluster_gpus(eplb_placement_cluster(check->placement));
    for (int32_t l = 0; l < eplb_placement_layers(check->placement); l++) {
        int32_t expected = eplb_placement_open_slots_on(check->placement, l, 0);
        int32_t g = 1;
        while (g < gpus && eplb_placement_open_slots_on(check->placement, l, g) == expected) {
            g++;
        }
        if (g < gpus) {
            eplb_engine_violation violation = whole(EPLB_ENGINE_UNEVEN_SLOTS);
            violation.layer = l;
            violation.layer_id = eplb_placement_layer_ids(check->placement)[l];
            violation.gpu = g;
            violation.actual = eplb_placement_open_slots_on(check->placement, l, g);
            violation.expected = expected;
            report(check, &violation);
        }
    }
}

static int pass_on(void *context, const eplb_violation *violation)
{
    checker *check = context;
    eplb_engine_violation own = {.kind = violation->kind,
                                 .layer = violation->layer,
                                 .layer_id =
                                     eplb_placement_layer_ids(check->placement)[violation->layer],
                                 .gpu = violation->gpu,
                                 .slot = violation->slot,
                                 .expert = violation->expert};
    report(check, &own);
    return check->stopped ? 1 : 0;
}

static eplb_status resolve_model(const eplb_engine_model *given, eplb_engine_model *model,
                                 eplb_error *error)
{
    eplb_engine_model_init(model);
    if (given != NULL && !eplb_struct_in(model, sizeof(*model), given)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "model without struct_size: see eplb_engine_model_init");
    }
    int32_t dense = model->dense_count;
    if (model->layers < 0 || dense < 0 || dense > model->layers ||
        (dense > 0 && model->dense_layers == NULL)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "model: %d dense layers of %d, or none listed", dense, model->layers);
    }
    for (int32_t d = 0; d < dense; d++) {
        int32_t low = d > 0 ? model->dense_layers[d - 1] + 1 : 0;
        if (model->dense_layers[d] < low || model->dense_layers[d] >= model->layers) {
            return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "model: dense layer %d not in %d..%d",
                                  model->dense_layers[d], low, model->layers - 1);
        }
    }
    return EPLB_OK;
}

void eplb_engine_model_init(eplb_engine_model *model)
{
    if (model != NULL) {
        *model = (eplb_engine_model){.struct_size = sizeof(*model)};
    }
}

eplb_status eplb_engine_check(const eplb_engine *engine, const eplb_placement *placement,
                              const eplb_engine_model *model,
                              int (*visit)(void *context, const eplb_engine_violation *violation),
                              void *context, int64_t *count, eplb_error *error)
{
    if (placement == NULL) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "check: no placement");
    }
    eplb_engine_model known;
    eplb_status status = resolve_model(model, &known, error);
    if (status != EPLB_OK) {
        return status;
    }
    checker check = {.engine = engine, .placement = placement, .visit = visit, .context = context};
    if (engine != NULL) {
        check_limits(&check);
        check_layers(&check, &known);
        if (!engine->uneven_slots) {
            check_even(&check);
        }
    }
    if (!check.stopped) {
        status = eplb_placement_check(placement, engine != NULL ? engine->flags : 0, pass_on,
                                      &check, NULL, error);
    }
    if (count != NULL) {
        *count = check.count;
    }
    return status;
}
