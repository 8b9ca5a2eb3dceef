/* SPDX-License-Identifier: MIT */
/* What a finder of the fewest copies is asked in a rebalance, and what its answers are worth. */
#include "rebalancing.h"

#define EXPERTS 6
#define SLOTS 8
#define TARGET 1.4

/* The spare slots belong to the hot expert: two copies do, and the search makes three. */
static const double loads[EXPERTS] = {100, 10, 10, 10, 10, 10};
static const int32_t in_force[SLOTS] = {0, 1, 2, 3, 4, 5, 1, 2};
static const int32_t fewest[SLOTS] = {0, 1, 0, 3, 4, 5, 0, 2};

typedef struct finder_state {
    const int32_t *slots; /* [SLOTS] to answer with; NULL: the start */
    int32_t gpus;         /* of the answer's cluster */
    bool fails;
    bool asks_to_stop;
    bool is_silent; /* no placement at all */
    eplb_fewest_result proven;
    int calls;
    int64_t first_copies; /* of the start, when it was asked first */
    bool was_last_from_start;
} finder_state;

typedef struct fixture {
    eplb_load *load;
    eplb_cluster *cluster;
    eplb_placement *current;
    eplb_plan_options planning;
    eplb_rebalance_options options;
    finder_state state;
    eplb_fewest_finder finder;
} fixture;

static void remember(finder_state *state, const eplb_fewest_task *task)
{
    int64_t copies;
    assert_ok(eplb_placement_validate(task->start, 0, NULL), NULL);
    assert_ok(eplb_placement_copies(task->current, task->start, task->layer, &copies, NULL), NULL);
    assert_int_equal(task->start_row, task->layer);
    assert_int_equal(task->current_row, task->layer);
    assert_true(task->target == TARGET);
    state->first_copies = state->calls++ == 0 ? copies : state->first_copies;
    state->was_last_from_start = task->current == task->start;
}

static eplb_status find(void *context, eplb_placement **out, const eplb_fewest_task *task,
                        eplb_fewest_result *result, eplb_error *error)
{
    finder_state *state = context;
    remember(state, task);
    if (state->fails) {
        return eplb_error_set(error, EPLB_ERROR_NOMEM, "out of memory");
    }
    if (state->asks_to_stop) {
        assert_int_equal(task->stop(task->stop_context), 1);
    }
    *result = state->proven;
    const int32_t *slots =
        state->slots != NULL ? state->slots : eplb_placement_row(task->start, task->start_row);
    if (!state->is_silent) {
        eplb_cluster *cluster = cluster_of(state->gpus, 2, 0);
        *out = placement_with_rows(cluster, slots, 1, EXPERTS);
        eplb_cluster_destroy(&cluster);
    }
    return EPLB_OK;
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof(*f));
    f->load = load_of(loads, 1, EXPERTS);
    f->cluster = cluster_of(4, 2, 0);
    f->current = placement_with_rows(f->cluster, in_force, 1, EXPERTS);
    f->state = (finder_state){.slots = fewest, .gpus = 4};
    f->state.proven.struct_size = sizeof(f->state.proven);
    f->state.proven.copies_at_least = 2;
    f->state.proven.imbalance_at_least = 1.125;
    f->state.proven.nodes = 7;
    f->finder =
        (eplb_fewest_finder){.struct_size = sizeof(f->finder), .find = find, .context = &f->state};
    eplb_plan_options_init(&f->planning);
    f->options = rebalance_defaults();
    f->options.beam = 1; /* the search must leave something to be found */
    f->options.target_imbalance = TARGET;
    f->options.fewest = &f->finder;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    eplb_load_destroy(&f->load);
    eplb_cluster_destroy(&f->cluster);
    eplb_placement_destroy(&f->current);
    free(f);
    return 0;
}

static eplb_plan *rebalanced(const fixture *f)
{
    return rebalance_of(f->load, f->cluster, f->current, &f->planning, &f->options);
}

static int64_t copies_of(const fixture *f)
{
    eplb_plan *plan = rebalanced(f);
    int64_t copies = info_of(plan).copies;
    eplb_plan_destroy(&plan);
    return copies;
}

static void fewer_copies_are_taken_and_proven(void **state)
{
    fixture *f = *state;
    eplb_plan *plan = rebalanced(f);
    eplb_rebalance_layer layer = rebalance_layer_of(plan, 0);
    eplb_rebalance_info info = rebalance_info_of(plan);
    assert_memory_equal(eplb_placement_row(eplb_plan_placement(plan), 0), fewest, sizeof(fewest));
    assert_int_equal(info_of(plan).copies, 2);
    assert_int_equal(layer.verdict, EPLB_FEWEST_PROVEN);
    assert_int_equal(layer.copies_at_least, 2);
    assert_int_equal(layer.copies_searched, 3);
    assert_int_equal(info.copies_searched, 3);
    assert_int_equal(info.layers_proven, 1);
    assert_int_equal(info.layers_impossible, 0);
    assert_int_equal(info_of(plan).refine_nodes, 7);
    assert_true(layer_of(plan, 0).lower_bound >= 1.125);
    assert_int_equal(f->state.calls, 1);
    assert_int_equal(f->state.first_copies, 3);
    eplb_plan_destroy(&plan);
}

static void without_a_proof_fewer_copies_are_taken_and_not_called_fewest(void **state)
{
    fixture *f = *state;
    f->state.proven.copies_at_least = 1;
    eplb_plan *plan = rebalanced(f);
    assert_int_equal(info_of(plan).copies, 2);
    assert_int_equal(rebalance_layer_of(plan, 0).verdict, EPLB_FEWEST_REACHED);
    assert_int_equal(rebalance_info_of(plan).layers_proven, 0);
    eplb_plan_destroy(&plan);
}

/* Whatever the finder says of its placement, libeplb counts and scores it. */
static void placements_that_are_not_valid_or_not_better_are_left_out(void **state)
{
    static const int32_t answers[][SLOTS] = {
        {0, 1, 0, 3, 4, 5, 0, 0},  /* twice on a GPU */
        {0, 1, 0, 3, 4, 5, 0, 1},  /* without expert 2 */
        {0, 1, 0, 3, 4, 5, 0, -1}, /* with an empty slot */
        {0, 1, 0, 2, 0, 3, 4, 5},  /* with more copies */
        {0, 1, 2, 3, 4, 5, 1, 2},  /* as it was, beyond the target */
    };
    fixture *f = *state;
    f->state.proven.copies = 1;
    f->state.proven.imbalance = 1.0;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        f->state.slots = answers[i];
        eplb_plan *plan = rebalanced(f);
        assert_int_equal(info_of(plan).copies, 3);
        assert_int_equal(rebalance_layer_of(plan, 0).verdict, EPLB_FEWEST_REACHED);
        eplb_plan_destroy(&plan);
    }
}

static void placements_of_another_shape_are_left_out(void **state)
{
    static const int32_t five[10] = {0, 1, 0, 3, 4, 5, 0, 2, 1, 2};
    fixture *f = *state;
    f->state.slots = five;
    f->state.gpus = 5;
    assert_int_equal(copies_of(f), 3);
    f->state.is_silent = true;
    assert_int_equal(copies_of(f), 3);
}

/* What the search keeps within a limit misses the target; so would the finder's placement. */
static void limits_of_copies_are_kept(void **state)
{
    fixture *f = *state;
    f->options.max_copies_per_layer = 1;
    eplb_plan *plan = rebalanced(f);
    assert_true(info_of(plan).copies <= 1);
    assert_int_equal(rebalance_layer_of(plan, 0).verdict, EPLB_FEWEST_NOT_REACHED);
    assert_int_equal(rebalance_layer_of(plan, 0).copies_at_least, 2);
    assert_int_equal(rebalance_info_of(plan).layers_missed, 1);
    eplb_plan_destroy(&plan);
    f->options.max_copies_per_layer = -1;
    f->options.max_copies = 1;
    assert_true(copies_of(f) <= 1);
    f->options.max_copies = 2;
    assert_int_equal(copies_of(f), 2);
    f->options.max_copies = -1;
    f->options.max_copies_per_gpu = 0;
    assert_int_equal(copies_of(f), 0);
    f->options.max_copies_per_gpu = 1;
    assert_int_equal(copies_of(f), 2);
}

static void limits_of_replicas_and_pins_are_kept(void **state)
{
    fixture *f = *state;
    const eplb_pin pin = {.layer = -1, .expert = 2, .gpu = 1};
    f->planning.pins = &pin;
    f->planning.pin_count = 1;
    eplb_plan *plan = rebalanced(f);
    const int32_t *row = eplb_placement_row(eplb_plan_placement(plan), 0);
    assert_true(row[2] == 2 || row[3] == 2);
    eplb_plan_destroy(&plan);
    f->planning.pin_count = 0;
    f->planning.max_replicas = 2;
    plan = rebalanced(f);
    int32_t hot = 0;
    for (int32_t s = 0; s < SLOTS; s++) {
        hot += eplb_placement_row(eplb_plan_placement(plan), 0)[s] == 0;
    }
    assert_true(hot <= 2);
    eplb_plan_destroy(&plan);
}

static void an_impossible_target_is_called_so(void **state)
{
    fixture *f = *state;
    double even[EXPERTS] = {100, 1, 1, 1, 1, 1};
    assert_ok(eplb_load_set_row(f->load, 0, 0, even, NULL), NULL);
    f->state.proven.verdict = EPLB_FEWEST_IMPOSSIBLE;
    f->state.slots = NULL;
    f->state.proven.imbalance_at_least = 1.41;
    f->options.max_copies_per_layer = 0;
    eplb_plan *plan = rebalanced(f);
    eplb_rebalance_layer layer = rebalance_layer_of(plan, 0);
    assert_int_equal(layer.verdict, EPLB_FEWEST_IMPOSSIBLE);
    assert_int_equal(layer.target_reached, 0);
    assert_int_equal(layer.copies_at_least, 0);
    assert_int_equal(rebalance_info_of(plan).layers_impossible, 1);
    assert_true(layer_of(plan, 0).lower_bound >= 1.41);
    eplb_plan_destroy(&plan);
}

/* From the placement in force first; a finder that comes to no end may find more from its own
 * result, as a later call would. Expert 0 alone is beyond the target. */
static void a_missed_target_is_asked_about_again_from_the_result(void **state)
{
    static const double hot[EXPERTS] = {100, 0, 0, 0, 0, 0};
    fixture *f = *state;
    assert_ok(eplb_load_set_row(f->load, 0, 0, hot, NULL), NULL);
    f->planning.max_replicas = 2;
    f->state.slots = NULL;
    f->state.proven.imbalance_at_least = 1.0;
    f->state.proven.verdict = EPLB_FEWEST_NOT_REACHED;
    eplb_plan *plan = rebalanced(f);
    assert_int_equal(rebalance_layer_of(plan, 0).verdict, EPLB_FEWEST_NOT_REACHED);
    assert_true(f->state.first_copies > 0);
    assert_int_equal(f->state.calls, 2);
    assert_true(f->state.was_last_from_start);
    eplb_plan_destroy(&plan);
}

static void without_a_target_nothing_is_asked(void **state)
{
    fixture *f = *state;
    f->options.target_imbalance = -1.0;
    eplb_plan *plan = rebalanced(f);
    assert_int_equal(f->state.calls, 0);
    assert_int_equal(rebalance_layer_of(plan, 0).verdict, -1);
    assert_int_equal(rebalance_info_of(plan).copies_searched, info_of(plan).copies);
    eplb_plan_destroy(&plan);
}

static void a_layer_without_load_is_not_asked_about(void **state)
{
    static const double none[EXPERTS] = {0};
    fixture *f = *state;
    assert_ok(eplb_load_set_row(f->load, 0, 0, none, NULL), NULL);
    eplb_plan *plan = rebalanced(f);
    assert_int_equal(f->state.calls, 0);
    assert_int_equal(info_of(plan).copies, 0);
    assert_int_equal(rebalance_layer_of(plan, 0).verdict, -1);
    eplb_plan_destroy(&plan);
}

static void a_failure_ends_the_rebalance(void **state)
{
    fixture *f = *state;
    eplb_error error;
    eplb_plan *plan;
    f->state.fails = true;
    assert_status(eplb_rebalance_create(&plan, NULL, f->load, f->cluster, f->current, &f->planning,
                                        &f->options, &error),
                  EPLB_ERROR_NOMEM, &error);
    assert_null(plan);
}

static void a_finder_without_function_is_refused(void **state)
{
    fixture *f = *state;
    eplb_error error;
    eplb_plan *plan;
    f->finder.find = NULL;
    assert_status(eplb_rebalance_create(&plan, NULL, f->load, f->cluster, f->current, &f->planning,
                                        &f->options, &error),
                  EPLB_ERROR_ARGUMENT, &error);
    assert_contains(error.message, "finder");
}

/* The search's calls come first. */
static int stop_in_the_finder(void *context, int32_t layers_done, int32_t layers)
{
    const finder_state *state = context;
    (void)layers_done;
    (void)layers;
    return state->calls > 0;
}

static void progress_stops_a_finder(void **state)
{
    fixture *f = *state;
    f->state.asks_to_stop = true;
    f->planning.progress = stop_in_the_finder;
    f->planning.progress_context = &f->state;
    eplb_plan *plan = rebalanced(f);
    assert_int_equal(info_of(plan).stop, EPLB_STOP_CANCELLED);
    assert_int_equal(info_of(plan).copies, 2);
    eplb_plan_destroy(&plan);
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

TEST_MAIN(FRESH(fewer_copies_are_taken_and_proven),
          FRESH(without_a_proof_fewer_copies_are_taken_and_not_called_fewest),
          FRESH(placements_that_are_not_valid_or_not_better_are_left_out),
          FRESH(placements_of_another_shape_are_left_out), FRESH(limits_of_copies_are_kept),
          FRESH(limits_of_replicas_and_pins_are_kept), FRESH(an_impossible_target_is_called_so),
          FRESH(a_missed_target_is_asked_about_again_from_the_result),
          FRESH(without_a_target_nothing_is_asked), FRESH(a_layer_without_load_is_not_asked_about),
          FRESH(a_failure_ends_the_rebalance), FRESH(a_finder_without_function_is_refused),
          FRESH(progress_stops_a_finder))
