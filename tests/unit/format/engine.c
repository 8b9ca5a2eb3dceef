/* SPDX-License-Identifier: MIT */
#include <eplb/engine.h>

#include "maps.h"

static const char *const names[] = {"sglang", "trtllm", "vllm", "ascend", "omni", "fastdeploy"};
#define ENGINES (sizeof(names) / sizeof(names[0]))

/* What was found, a line each, and when to stop. */
typedef struct findings {
    const eplb_placement *placement;
    char text[2048];
    int64_t stop_at; /* 0: never */
    int64_t visited;
    eplb_engine_violation last;
} findings;

static int add_finding(void *context, const eplb_engine_violation *violation)
{
    findings *self = context;
    char line[160];
    size_t used = strlen(self->text);
    snprintf(self->text + used, sizeof(self->text) - used, "%s: %s\n",
             eplb_engine_violation_name(violation->kind),
             eplb_engine_violation_text(self->placement, violation, line, sizeof(line)));
    self->last = *violation;
    return ++self->visited == self->stop_at;
}

static void assert_findings(const char *engine, const eplb_placement *placement,
                            const eplb_engine_model *model, const char *expected)
{
    findings found = {.placement = placement};
    eplb_error error;
    int64_t count = -1;
    assert_ok(eplb_engine_check(eplb_engine_find(engine), placement, model, add_finding, &found,
                                &count, &error),
              &error);
    assert_string_equal(found.text, expected);
    assert_true(count == found.visited);
}

static eplb_engine_model model_of(int32_t layers, const int32_t *dense, int32_t dense_count)
{
    eplb_engine_model model;
    eplb_engine_model_init(&model);
    model.layers = layers;
    model.dense_layers = dense;
    model.dense_count = dense_count;
    return model;
}

/* Rows that hold the experts in turn. */
static eplb_placement *make_turns(int32_t layers, int32_t gpus, int32_t slots, int32_t experts)
{
    eplb_cluster *cluster;
    eplb_placement *placement;
    assert_ok(eplb_cluster_create(&cluster, NULL, gpus, slots, 0, NULL), NULL);
    assert_ok(eplb_placement_create(&placement, NULL, cluster, layers, experts, NULL), NULL);
    eplb_cluster_destroy(&cluster);
    int32_t *row = calloc((size_t)gpus * (size_t)slots, sizeof(*row));
    assert_non_null(row);
    for (int32_t s = 0; s < gpus * slots; s++) {
        row[s] = s % experts;
    }
    for (int32_t l = 0; l < layers; l++) {
        assert_ok(eplb_placement_set_row(placement, l, row, NULL), NULL);
    }
    free(row);
    return placement;
}

static void engines_come_in_a_fixed_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < ENGINES; i++) {
        const eplb_engine *engine = eplb_engine_at(i);
        assert_string_equal(eplb_engine_name(engine), names[i]);
        assert_ptr_equal(eplb_engine_find(names[i]), engine);
        assert_string_equal(eplb_engine_format_name(engine), names[i]);
        assert_true(strlen(eplb_engine_title(engine)) > 0);
    }
    assert_null(eplb_engine_at(ENGINES));
    assert_null(eplb_engine_find("SGLang"));
    assert_null(eplb_engine_find(""));
    assert_null(eplb_engine_find(NULL));
}

static void formats_know_the_engine_that_loads_them(void **state)
{
    (void)state;
    const eplb_engine *vllm = eplb_engine_find("vllm");
    assert_ptr_equal(eplb_engine_of_format(eplb_format_find("vllm")), vllm);
    assert_ptr_equal(eplb_engine_of_format(eplb_format_find("omni")), eplb_engine_find("omni"));
    assert_null(eplb_engine_of_format(eplb_format_find("csv")));
    assert_null(eplb_engine_of_format(NULL));
}

static void recorded_map_breaks_no_rule(void **state)
{
    (void)state;
    eplb_placement *placement = make_recorded_placement();
    for (size_t i = 0; i < ENGINES; i++) {
        assert_findings(names[i], placement, NULL, "");
    }
    eplb_placement_destroy(&placement);
}

static void number_of_rows_is_that_of_hidden_or_of_moe_layers(void **state)
{
    (void)state;
    static const int32_t dense[] = {0, 2};
    const eplb_engine_model fits = model_of(4, dense, 1);
    const eplb_engine_model deeper = model_of(7, dense, 2);
    eplb_placement *placement = make_recorded_placement();
    assert_findings("sglang", placement, &fits, "layer_count: 3 layers, expected 4\n");
    assert_findings("sglang", placement, &deeper, "layer_count: 3 layers, expected 7\n");
    static const char *const by_order[] = {"vllm", "ascend", "omni", "fastdeploy"};
    for (size_t i = 0; i < 4; i++) {
        assert_findings(by_order[i], placement, &fits, "");
        assert_findings(by_order[i], placement, &deeper, "layer_count: 3 layers, expected 5\n");
    }
    eplb_placement_destroy(&placement);
    placement = make_turns(4, 2, 2, 4);
    assert_findings("sglang", placement, &fits, "");
    assert_findings("vllm", placement, &fits, "layer_count: 4 layers, expected 3\n");
    eplb_placement_destroy(&placement);
}

/* The draft model's are beside those that the model's config counts. */
static void layers_of_the_draft_model_are_not_the_models(void **state)
{
    (void)state;
    static const int32_t dense[] = {0};
    const eplb_engine_model model = model_of(4, dense, 1);
    const eplb_engine_model all_moe = model_of(3, NULL, 0);
    eplb_placement *placement = make_turns(4, 2, 2, 4);
    assert_findings("ascend", placement, &model, "layer_count: 4 layers, expected 3\n");
    assert_findings("trtllm", placement, &all_moe,
                    "other_layer: layer 3: a row, but the model has no experts there\n");
    assert_ok(eplb_placement_set_draft_layers(placement, 1, NULL), NULL);
    assert_findings("ascend", placement, &model, "");
    assert_findings("trtllm", placement, &all_moe, "");
    assert_ok(eplb_placement_set_draft_layers(placement, 2, NULL), NULL);
    assert_findings("ascend", placement, &model, "layer_count: 2 layers, expected 3\n");
    assert_findings("trtllm", placement, &all_moe,
                    "missing_layer: layer 2: no row for this MoE layer\n");
    eplb_placement_destroy(&placement);
}

static void one_list_serves_all_layers_of_vllm_only(void **state)
{
    (void)state;
    const eplb_engine_model model = model_of(3, NULL, 0);
    eplb_placement *placement = make_turns(1, 2, 2, 4);
    assert_findings("vllm", placement, &model, "");
    assert_findings("ascend", placement, &model, "layer_count: 1 layer, expected 3\n");
    eplb_placement_destroy(&placement);
}

static void rows_by_layer_number_are_those_of_the_moe_layers(void **state)
{
    (void)state;
    static const int32_t dense[] = {0, 2, 5};
    const eplb_engine_model fits = model_of(4, dense, 1);
    const eplb_engine_model shifted = model_of(6, dense + 1, 2);
    const eplb_engine_model shallow = model_of(2, dense, 1);
    eplb_placement *placement = make_recorded_placement();
    assert_findings("trtllm", placement, &fits, "");
    assert_findings("trtllm", placement, &shifted,
                    "missing_layer: layer 0: no row for this MoE layer\n"
                    "other_layer: layer 2: a row, but the model has no experts there\n"
                    "missing_layer: layer 4: no row for this MoE layer\n");
    assert_findings("trtllm", placement, &shallow,
                    "other_layer: layer 2: a row, but the model has no experts there\n"
                    "other_layer: layer 3: a row, but the model has no experts there\n");
    eplb_placement_destroy(&placement);
}

static void layers_are_not_checked_without_a_model(void **state)
{
    (void)state;
    const eplb_engine_model unknown = model_of(0, NULL, 0);
    eplb_placement *placement = make_recorded_placement();
    assert_findings("trtllm", placement, &unknown, "");
    assert_findings("sglang", placement, &unknown, "");
    eplb_placement_destroy(&placement);
}

static void limits_of_an_engine_are_checked_before_layers(void **state)
{
    (void)state;
    eplb_placement *placement = make_turns(1, 65, 1024, 1025);
    findings found = {.placement = placement, .stop_at = 2};
    int64_t count;
    assert_ok(eplb_engine_check(eplb_engine_find("trtllm"), placement, NULL, add_finding, &found,
                                &count, NULL),
              NULL);
    assert_string_equal(found.text, "expert_limit: 1025 experts, at most 1024 are possible\n"
                                    "slot_limit: 66560 slots, at most 65536 are possible\n");
    assert_true(count == 2);
    assert_findings("ascend", placement, NULL, "");
    eplb_placement_destroy(&placement);
    placement = make_turns(1, 64, 1024, 1024);
    assert_findings("trtllm", placement, NULL, "");
    eplb_placement_destroy(&placement);
}

static void gpus_with_more_slots_than_others_are_named_in_each_layer(void **state)
{
    (void)state;
    static const int32_t row[] = {0, 1, 2, 3, 0};
    static const int32_t closing[] = {2, 2};
    static const int32_t shorter[] = {0, 1, 2, 3, -1};
    eplb_cluster *cluster;
    eplb_placement *placement;
    assert_ok(eplb_cluster_create(&cluster, NULL, 2, 2, 0, NULL), NULL);
    assert_ok(eplb_cluster_set_slots(cluster, 1, 3, NULL), NULL);
    assert_ok(eplb_placement_create(&placement, NULL, cluster, 2, 4, NULL), NULL);
    eplb_cluster_destroy(&cluster);
    assert_ok(eplb_placement_set_row(placement, 0, row, NULL), NULL);
    assert_ok(eplb_placement_set_layer_slots(placement, 1, closing, NULL), NULL);
    assert_ok(eplb_placement_set_row(placement, 1, shorter, NULL), NULL);
    assert_findings("omni", placement, NULL, "");
    assert_findings("ascend", placement, NULL,
                    "uneven_slots: layer 0: 3 slots on GPU 1, 2 on GPU 0\n");
    eplb_placement_destroy(&placement);
}

static void invariants_are_checked_with_every_engine_and_without(void **state)
{
    (void)state;
    static const int32_t rows[LAYERS][SLOTS] = {{0, 0, 2, 3, 0, 4, 5, 6, 0, 7, 3, 5},
                                                {7, 2, 1, 2, 0, 3, 2, 4, 5, 6, 7, 1},
                                                {0, 4, 1, 5, 2, 4, 3, 6, 4, 7, 0, -1}};
    static const char duplicate[] = "duplicate: layer 1: expert 0 twice on GPU 0 (slot 1)\n"
                                    "missing_expert: layer 1: expert 1 has no replica\n";
    static const char all[] = "duplicate: layer 1: expert 0 twice on GPU 0 (slot 1)\n"
                              "missing_expert: layer 1: expert 1 has no replica\n"
                              "empty_slot: layer 3: slot 11 of GPU 3 is empty\n";
    const eplb_engine_model model = model_of(9, NULL, 0);
    eplb_placement *placement = make_placement(rows, LAYERS + 1);
    assert_findings(NULL, placement, &model, all);
    for (size_t i = 0; i < ENGINES; i++) { /* vLLM knows empty slots */
        assert_findings(names[i], placement, NULL, strcmp(names[i], "vllm") ? all : duplicate);
    }
    eplb_placement_destroy(&placement);
}

static void a_violation_has_its_place_in_numbers(void **state)
{
    (void)state;
    static const int32_t rows[LAYERS][SLOTS] = {{0, 1, 2, 3, 0, 4, 5, 6, 0, 7, 3, 5},
                                                {7, 2, 1, 2, 0, 3, 2, 4, 5, 6, 7, 1},
                                                {0, 4, 1, 5, 2, 4, 3, 6, 3, 7, 0, 4}};
    eplb_placement *placement = make_placement(rows, 0);
    findings found = {.placement = placement};
    const eplb_engine *engine = eplb_engine_find("ascend");
    assert_ok(eplb_engine_check(engine, placement, NULL, add_finding, &found, NULL, NULL), NULL);
    assert_int_equal(found.visited, 1);
    assert_int_equal(found.last.kind, EPLB_VIOLATION_DUPLICATE);
    assert_int_equal(found.last.layer, 2);
    assert_int_equal(found.last.layer_id, 3);
    assert_int_equal(found.last.gpu, 2);
    assert_int_equal(found.last.slot, 8);
    assert_int_equal(found.last.expert, 3);
    const eplb_engine_model model = model_of(9, NULL, 0);
    found.stop_at = 2;
    int64_t count;
    assert_ok(eplb_engine_check(engine, placement, &model, add_finding, &found, &count, NULL),
              NULL);
    assert_true(count == 1);
    assert_int_equal(found.last.kind, EPLB_ENGINE_LAYER_COUNT);
    assert_int_equal(found.last.layer, -1);
    assert_int_equal(found.last.layer_id, -1);
    assert_int_equal(found.last.actual, 3);
    assert_int_equal(found.last.expected, 9);
    eplb_placement_destroy(&placement);
}

static void models_that_contradict_themselves_are_refused(void **state)
{
    (void)state;
    static const int32_t twice[] = {1, 1};
    static const int32_t below[] = {-1};
    static const int32_t beyond[] = {0, 4};
    eplb_engine_model models[] = {
        model_of(-1, NULL, 0), model_of(4, NULL, -1), model_of(1, twice, 2),  model_of(4, NULL, 1),
        model_of(4, twice, 2), model_of(4, below, 1), model_of(4, beyond, 2), {.struct_size = 0}};
    eplb_placement *placement = make_recorded_placement();
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        eplb_error error;
        assert_status(eplb_engine_check(eplb_engine_find("sglang"), placement, &models[i], NULL,
                                        NULL, NULL, &error),
                      EPLB_ERROR_ARGUMENT, &error);
        assert_contains(error.message, "model");
    }
    eplb_placement_destroy(&placement);
    assert_status(eplb_engine_check(NULL, NULL, NULL, NULL, NULL, NULL, NULL), EPLB_ERROR_ARGUMENT,
                  NULL);
}

static eplb_status check_once(const eplb_hooks *hooks, void *context)
{
    eplb_placement *copy = NULL;
    eplb_error error;
    eplb_status status = eplb_placement_clone(&copy, hooks, context, &error);
    if (status == EPLB_OK) {
        status =
            eplb_engine_check(eplb_engine_find("sglang"), copy, NULL, NULL, NULL, NULL, &error);
    }
    eplb_placement_destroy(&copy);
    return status;
}

static void failing_allocations_are_reported(void **state)
{
    (void)state;
    eplb_placement *placement = make_recorded_placement();
    test_each_failing_allocation(check_once, placement);
    eplb_placement_destroy(&placement);
}

static void every_kind_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(eplb_engine_violation_name(EPLB_VIOLATION_MISSING_EXPERT),
                        "missing_expert");
    assert_string_equal(eplb_engine_violation_name(EPLB_VIOLATION_DEAD_GPU), "dead_gpu");
    assert_string_equal(eplb_engine_violation_name(EPLB_VIOLATION_CLOSED_SLOT), "closed_slot");
    assert_string_equal(eplb_engine_violation_name(EPLB_ENGINE_UNREADABLE), "unreadable");
    assert_string_equal(eplb_engine_violation_name(EPLB_ENGINE_UNEVEN_SLOTS), "uneven_slots");
    static const int32_t unknown[] = {INT32_MIN, -1, 0, 6, 99, EPLB_ENGINE_UNEVEN_SLOTS + 1,
                                      INT32_MAX};
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        assert_null(eplb_engine_violation_name(unknown[i]));
    }
}

static void a_long_line_is_cut(void **state)
{
    (void)state;
    eplb_engine_violation violation = {.kind = EPLB_ENGINE_LAYER_COUNT, .actual = 3, .expected = 4};
    char text[8];
    assert_string_equal(eplb_engine_violation_text(NULL, &violation, text, sizeof(text)),
                        "3 layer");
}

/* What is known, and nothing else: NULL is as much a statement. */
static void explanations_say_what_the_engine_does(void **state)
{
    (void)state;
    static const struct {
        const char *engine;
        int32_t kind;
        const char *part; /* NULL: not known */
    } rows[] = {
        {"sglang", EPLB_VIOLATION_MISSING_EXPERT, "ZeroDivisionError"},
        {"sglang", EPLB_VIOLATION_EMPTY_SLOT, "-1 for the last expert"},
        {"sglang", EPLB_VIOLATION_DUPLICATE, "deepseek-ai/EPLB#22"},
        {"sglang", EPLB_ENGINE_LAYER_COUNT, "silently"},
        {"sglang", EPLB_ENGINE_UNREADABLE, "TypeError"},
        {"sglang", EPLB_ENGINE_MISSING_LAYER, NULL},
        {"trtllm", EPLB_VIOLATION_MISSING_EXPERT, "refuses"},
        {"trtllm", EPLB_VIOLATION_DUPLICATE, "in turn"},
        {"trtllm", EPLB_VIOLATION_EMPTY_SLOT, NULL},
        {"trtllm", EPLB_ENGINE_MISSING_LAYER, "refuses"},
        {"trtllm", EPLB_ENGINE_OTHER_LAYER, NULL},
        {"trtllm", EPLB_ENGINE_EXPERT_LIMIT, "1024"},
        {"trtllm", EPLB_ENGINE_SLOT_LIMIT, "16 bits"},
        {"trtllm", EPLB_ENGINE_UNEVEN_SLOTS, "EP size"},
        {"trtllm", EPLB_ENGINE_UNREADABLE, "integers as keys"},
        {"vllm", EPLB_VIOLATION_MISSING_EXPERT, "vllm-project/vllm#49572"},
        {"vllm", EPLB_VIOLATION_DUPLICATE, "vllm-project/vllm#18343"},
        {"vllm", EPLB_ENGINE_LAYER_COUNT, "vllm-project/vllm#49572"},
        {"vllm", EPLB_ENGINE_UNREADABLE, "vllm-project/vllm#49572"},
        {"ascend", EPLB_VIOLATION_MISSING_EXPERT, NULL},
        {"ascend", EPLB_VIOLATION_DUPLICATE, "misroutes"},
        {"ascend", EPLB_ENGINE_UNEVEN_SLOTS, "vllm-project/vllm-ascend#8710"},
        {"ascend", EPLB_ENGINE_UNREADABLE, "order of the lists"},
        {"omni", EPLB_VIOLATION_MISSING_EXPERT, NULL},
        {"fastdeploy", EPLB_VIOLATION_DUPLICATE, NULL},
        {NULL, EPLB_VIOLATION_DUPLICATE, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const eplb_engine *engine = eplb_engine_find(rows[i].engine);
        const char *text = eplb_engine_explain(engine, rows[i].kind);
        if (rows[i].part == NULL) {
            assert_null(text);
        } else {
            assert_non_null(text);
            assert_contains(text, rows[i].part);
            assert_contains(text, eplb_engine_title(engine));
        }
    }
}

TEST_MAIN(cmocka_unit_test(engines_come_in_a_fixed_order),
          cmocka_unit_test(formats_know_the_engine_that_loads_them),
          cmocka_unit_test(recorded_map_breaks_no_rule),
          cmocka_unit_test(number_of_rows_is_that_of_hidden_or_of_moe_layers),
          cmocka_unit_test(layers_of_the_draft_model_are_not_the_models),
          cmocka_unit_test(one_list_serves_all_layers_of_vllm_only),
          cmocka_unit_test(rows_by_layer_number_are_those_of_the_moe_layers),
          cmocka_unit_test(layers_are_not_checked_without_a_model),
          cmocka_unit_test(limits_of_an_engine_are_checked_before_layers),
          cmocka_unit_test(gpus_with_more_slots_than_others_are_named_in_each_layer),
          cmocka_unit_test(invariants_are_checked_with_every_engine_and_without),
          cmocka_unit_test(a_violation_has_its_place_in_numbers),
          cmocka_unit_test(models_that_contradict_themselves_are_refused),
          cmocka_unit_test(failing_allocations_are_reported),
          cmocka_unit_test(every_kind_has_a_name), cmocka_unit_test(a_long_line_is_cut),
          cmocka_unit_test(explanations_say_what_the_engine_does))
