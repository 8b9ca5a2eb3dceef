/* SPDX-License-Identifier: MIT */
/* What fewest copies promise, on layers small enough to see it. */
#include "fewest.h"

#define NODES 1000000

static eplb_placement *placement_of(const eplb_cluster *cluster, int32_t experts,
                                    const int32_t *row)
{
    eplb_placement *placement;
    assert_ok(eplb_placement_create(&placement, NULL, cluster, 1, experts, NULL), NULL);
    assert_ok(eplb_placement_set_row(placement, 0, row, NULL), NULL);
    return placement;
}

static eplb_cluster *with_dead_gpu(eplb_cluster *cluster, int32_t gpu)
{
    assert_ok(eplb_cluster_set_alive(cluster, gpu, 0, NULL), NULL);
    return cluster;
}

/* Four experts on GPUs of some slots, from a row, to a target: the answer's row. */
static eplb_fewest_result solve_four(const double *loads, const int32_t *row,
                                     const eplb_cluster *from, const eplb_cluster *to,
                                     double target, int32_t *answer)
{
    eplb_load *load = load_of(loads, 1, 4);
    eplb_placement *current = placement_of(from, 4, row);
    eplb_placement *placement;
    eplb_fewest_task task = task_of(current, load, to, target);
    eplb_fewest_result result = solve_fewest(&task, NODES, &placement);
    memcpy(answer, eplb_placement_row(placement, 0),
           (size_t)eplb_placement_slots(placement) * sizeof(*answer));
    eplb_placement_destroy(&placement);
    eplb_placement_destroy(&current);
    eplb_load_destroy(&load);
    return result;
}

static void assert_row(const int32_t *row, const int32_t *expected, size_t slots)
{
    assert_memory_equal(row, expected, slots * sizeof(*row));
}

static void experts_that_stay_keep_their_slots(void **state)
{
    (void)state;
    eplb_cluster *cluster = cluster_of(2, 2, 0);
    int32_t row[4];
    eplb_fewest_result result = solve_four(
        (const double[]){4, 3, 2, 1}, (const int32_t[]){1, 0, 3, 2}, cluster, cluster, 1.0, row);
    assert_int_equal(result.verdict, EPLB_FEWEST_PROVEN);
    assert_int_equal(result.copies, 2);
    bool zero_left = row[1] != 0; /* 0 and 3 must be together, 1 and 2, too */
    assert_row(row, zero_left ? (const int32_t[]){1, 2, 3, 0} : (const int32_t[]){3, 0, 1, 2}, 4);
    eplb_cluster_destroy(&cluster);
}

static void empty_slot_is_filled_by_one_copy(void **state)
{
    (void)state;
    eplb_cluster *cluster = cluster_of(3, 2, 0);
    int32_t row[6];
    eplb_fewest_result result =
        solve_four((const double[]){8, 1, 1, 2}, (const int32_t[]){0, 1, 0, -1, 2, 3}, cluster,
                   cluster, 2.0, row);
    assert_int_equal(result.verdict, EPLB_FEWEST_PROVEN);
    assert_int_equal(result.copies, 1);
    eplb_cluster_destroy(&cluster);
}

static void second_replica_on_a_gpu_is_not_kept(void **state)
{
    (void)state;
    eplb_cluster *cluster = cluster_of(3, 2, 0);
    int32_t row[6];
    eplb_fewest_result result =
        solve_four((const double[]){2, 2, 2, 2}, (const int32_t[]){0, 0, 1, 2, 3, 1}, cluster,
                   cluster, 2.0, row);
    assert_int_equal(result.copies, 1);
    assert_int_equal(row[0], 0);
    eplb_cluster_destroy(&cluster);
}

static void experts_of_a_dead_gpu_are_copied_elsewhere(void **state)
{
    (void)state;
    eplb_cluster *whole = cluster_of(3, 2, 0);
    eplb_cluster *cluster = with_dead_gpu(cluster_of(3, 2, 0), 1);
    int32_t row[6];
    eplb_fewest_result result =
        solve_four((const double[]){1, 1, 1, 1}, (const int32_t[]){0, 1, 2, 3, 0, 1}, whole,
                   cluster, 1.0, row);
    assert_int_equal(result.verdict, EPLB_FEWEST_PROVEN);
    assert_int_equal(result.copies, 2);
    assert_row(row + 2, (const int32_t[]){-1, -1}, 2);
    eplb_cluster_destroy(&whole);
    eplb_cluster_destroy(&cluster);
}

static void fewer_slots_are_left_without_copies(void **state)
{
    (void)state;
    eplb_cluster *wide = cluster_of(2, 3, 0);
    eplb_cluster *narrow = cluster_of(2, 2, 0);
    int32_t row[4];
    eplb_fewest_result result = solve_four(
        (const double[]){1, 1, 1, 1}, (const int32_t[]){0, 1, 2, 3, 2, 0}, wide, narrow, 1.0, row);
    assert_int_equal(result.verdict, EPLB_FEWEST_PROVEN);
    assert_int_equal(result.copies, 0);
    assert_int_equal(row[1], 1); /* the only place of expert 1, as slot 0 of GPU 1 is of 3 */
    assert_int_equal(row[2], 3);
    eplb_cluster_destroy(&wide);
    eplb_cluster_destroy(&narrow);
}

static void layer_without_load_stays(void **state)
{
    (void)state;
    eplb_cluster *cluster = cluster_of(2, 2, 0);
    const int32_t current[] = {3, 0, 1, 2};
    int32_t row[4];
    eplb_fewest_result result =
        solve_four((const double[]){0, 0, 0, 0}, current, cluster, cluster, 1.0, row);
    assert_int_equal(result.verdict, EPLB_FEWEST_PROVEN);
    assert_int_equal(result.copies, 0);
    assert_true(result.imbalance == 0.0);
    assert_row(row, current, 4);
    eplb_cluster_destroy(&cluster);
}

static void layer_without_load_needs_a_copy_for_a_missing_expert(void **state)
{
    (void)state;
    eplb_cluster *cluster = cluster_of(2, 2, 0);
    int32_t row[4];
    eplb_fewest_result result = solve_four(
        (const double[]){0, 0, 0, 0}, (const int32_t[]){3, 0, 3, 2}, cluster, cluster, 1.0, row);
    assert_int_equal(result.verdict, EPLB_FEWEST_PROVEN);
    assert_int_equal(result.copies, 1);
    eplb_cluster_destroy(&cluster);
}

static void layer_ids_go_over_to_the_placement(void **state)
{
    (void)state;
    const double loads[] = {1, 2, 3, 4, 4, 3, 2, 1};
    eplb_load *load = load_of(loads, 2, 4);
    assert_ok(eplb_load_set_layer_ids(load, (const int32_t[]){3, 7}, 10, NULL), NULL);
    eplb_cluster *cluster = cluster_of(2, 2, 0);
    eplb_placement *current = placement_of(cluster, 4, (const int32_t[]){0, 1, 2, 3});
    eplb_fewest_task task = task_of(current, load, cluster, 1.2);
    task.layer = 1;
    eplb_placement *placement;
    (void)solve_fewest(&task, NODES, &placement);
    assert_int_equal(eplb_placement_layers(placement), 1);
    assert_int_equal(eplb_placement_layer_ids(placement)[0], 7);
    assert_int_equal(eplb_placement_model_layers(placement), 10);
    eplb_placement_destroy(&placement);
    eplb_placement_destroy(&current);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&load);
}

/* A good task, to be spoiled. */
typedef struct inputs {
    eplb_load *load;
    eplb_cluster *cluster;
    eplb_cluster *narrow;
    eplb_placement *current;
    eplb_placement *other_shape;
    eplb_placement *invalid;
    eplb_fewest_task task;
} inputs;

static inputs make_inputs(void)
{
    inputs in = {.cluster = cluster_of(2, 3, 0), .narrow = cluster_of(2, 1, 0)};
    in.load = load_of((const double[]){1, 2, 3, 4}, 1, 4);
    in.current = placement_of(in.cluster, 4, (const int32_t[]){0, 1, 2, 3, 0, 1});
    in.other_shape = placement_of(in.narrow, 4, (const int32_t[]){0, 1});
    in.invalid = placement_of(in.cluster, 4, (const int32_t[]){0, 0, 2, 3, 0, 1});
    in.task = task_of(in.current, in.load, in.cluster, 1.1);
    return in;
}

static void free_inputs(inputs *in)
{
    eplb_load_destroy(&in->load);
    eplb_cluster_destroy(&in->cluster);
    eplb_cluster_destroy(&in->narrow);
    eplb_placement_destroy(&in->current);
    eplb_placement_destroy(&in->other_shape);
    eplb_placement_destroy(&in->invalid);
}

static void assert_refused(const eplb_fewest_task *task, eplb_status expected, const char *part)
{
    eplb_ilp *ilp = ilp_of(NODES);
    eplb_error error;
    eplb_placement *placement;
    eplb_fewest_result result = {.struct_size = sizeof(result), .copies = 12345};
    eplb_status status = eplb_ilp_fewest_copies(ilp, &placement, task, &result, &error);
    assert_status(status, expected, &error);
    assert_contains(error.message, part);
    assert_null(placement);
    assert_int_equal(result.copies, 12345);
    eplb_ilp_destroy(&ilp);
}

static void wrong_tasks_are_refused_with_the_value(void **state)
{
    (void)state;
    inputs in = make_inputs();
    const struct {
        eplb_fewest_task task;
        eplb_status status;
        const char *part;
    } wrong[] = {
        {{.struct_size = 0}, EPLB_ERROR_ARGUMENT, "struct_size"},
        {task_of(NULL, in.load, in.cluster, 1.1), EPLB_ERROR_ARGUMENT, "no current placement"},
        {task_of(in.current, NULL, in.cluster, 1.1), EPLB_ERROR_ARGUMENT, "no load"},
        {task_of(in.current, in.load, NULL, 1.1), EPLB_ERROR_ARGUMENT, "no cluster"},
        {task_of(in.current, in.load, in.cluster, 0.99), EPLB_ERROR_ARGUMENT, "0.99"},
        {task_of(in.current, in.load, in.cluster, NAN), EPLB_ERROR_ARGUMENT, "nan"},
        {task_of(in.current, in.load, in.cluster, INFINITY), EPLB_ERROR_ARGUMENT, "inf"},
        {task_of(in.current, in.load, in.narrow, 1.1), EPLB_ERROR_INFEASIBLE, "4 experts"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_refused(&wrong[i].task, wrong[i].status, wrong[i].part);
    }
    free_inputs(&in);
}

static void spoil_and_refuse(const inputs *in, void (*spoil)(eplb_fewest_task *, const inputs *),
                             eplb_status status, const char *part)
{
    eplb_fewest_task task = in->task;
    spoil(&task, in);
    assert_refused(&task, status, part);
}

static void set_layer(eplb_fewest_task *task, const inputs *in)
{
    (void)in;
    task->layer = 1;
}

static void set_row(eplb_fewest_task *task, const inputs *in)
{
    (void)in;
    task->current_row = -1;
}

static void set_objective(eplb_fewest_task *task, const inputs *in)
{
    (void)in;
    task->objective = 3;
}

static void set_narrow_start(eplb_fewest_task *task, const inputs *in)
{
    task->start = in->other_shape;
}

static void set_invalid_start(eplb_fewest_task *task, const inputs *in)
{
    task->start = in->invalid;
}

static void wrong_indices_and_starts_are_refused(void **state)
{
    (void)state;
    inputs in = make_inputs();
    spoil_and_refuse(&in, set_layer, EPLB_ERROR_ARGUMENT, "layer 1 not in 0..0");
    spoil_and_refuse(&in, set_row, EPLB_ERROR_ARGUMENT, "row -1 not in 0..0");
    spoil_and_refuse(&in, set_objective, EPLB_ERROR_ARGUMENT, "objective 3");
    spoil_and_refuse(&in, set_narrow_start, EPLB_ERROR_ARGUMENT, "GPU 0 has 1 slots");
    spoil_and_refuse(&in, set_invalid_start, EPLB_ERROR_DATA, "expert 0 twice on GPU 0");
    free_inputs(&in);
}

static eplb_status solve_once(const eplb_hooks *hooks, void *context)
{
    eplb_ilp *ilp;
    eplb_status status = eplb_ilp_create(&ilp, hooks, NULL, NULL);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_error error;
    eplb_placement *placement;
    eplb_fewest_result result = {.struct_size = sizeof(result)};
    status = eplb_ilp_fewest_copies(ilp, &placement, context, &result, &error);
    assert_true((status == EPLB_OK) == (placement != NULL));
    eplb_placement_destroy(&placement);
    eplb_ilp_destroy(&ilp);
    return status;
}

static void each_failing_allocation_is_reported(void **state)
{
    (void)state;
    inputs in = make_inputs();
    in.task.target = 1.0;
    for (int32_t objective = 0; objective <= EPLB_OBJECTIVE_SUM; objective++) {
        in.task.objective = objective;
        test_each_failing_allocation(solve_once, &in.task);
    }
    free_inputs(&in);
}

static void verdicts_have_names(void **state)
{
    (void)state;
    assert_string_equal(eplb_fewest_verdict_name(EPLB_FEWEST_PROVEN), "proven");
    assert_string_equal(eplb_fewest_verdict_name(EPLB_FEWEST_IMPOSSIBLE), "impossible");
}

TEST_MAIN(cmocka_unit_test(experts_that_stay_keep_their_slots),
          cmocka_unit_test(empty_slot_is_filled_by_one_copy),
          cmocka_unit_test(second_replica_on_a_gpu_is_not_kept),
          cmocka_unit_test(experts_of_a_dead_gpu_are_copied_elsewhere),
          cmocka_unit_test(fewer_slots_are_left_without_copies),
          cmocka_unit_test(layer_without_load_stays),
          cmocka_unit_test(layer_without_load_needs_a_copy_for_a_missing_expert),
          cmocka_unit_test(layer_ids_go_over_to_the_placement),
          cmocka_unit_test(wrong_tasks_are_refused_with_the_value),
          cmocka_unit_test(wrong_indices_and_starts_are_refused),
          cmocka_unit_test(each_failing_allocation_is_reported),
          cmocka_unit_test(verdicts_have_names))
