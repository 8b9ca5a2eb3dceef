/* SPDX-License-Identifier: MIT */
/* Fix and optimise: a few GPUs filled anew, again and again. */
#include <eplb/plan.h>

#include "ilp/neighbourhood.h"
#include "ilp/region_choose.h"
#include "programs.h"

#define MOST_GPUS 12
#define MOST_SLOTS 48
#define MOST_EXPERTS 40
#define MOST_SCENARIOS 3

/* A layer, with all that its task points to. */
typedef struct layer {
    eplb_refine_task task;
    int32_t first_slot[MOST_GPUS + 1];
    double loads[MOST_SCENARIOS * MOST_EXPERTS];
    double weights[MOST_SCENARIOS];
    int32_t placement[MOST_SLOTS];
    uint8_t pinned[MOST_SLOTS];
} layer;

static int go_on(void *context)
{
    (void)context;
    return 0;
}

static int stop_now(void *context)
{
    ++*(int *)context;
    return 1;
}

static void connect(layer *self, int32_t experts, int32_t gpus, int32_t scenarios)
{
    self->task = (eplb_refine_task){.struct_size = sizeof(self->task),
                                    .experts = experts,
                                    .gpus = gpus,
                                    .slots = self->first_slot[gpus],
                                    .scenarios = scenarios,
                                    .objective = EPLB_OBJECTIVE_MEAN_OF_MAX,
                                    .min_replicas = 1,
                                    .max_replicas = gpus,
                                    .first_slot = self->first_slot,
                                    .loads = self->loads,
                                    .weights = self->weights,
                                    .placement = self->placement,
                                    .lower_bound = 1.0,
                                    .stop = go_on};
}

/* The objective of a placement, which must be valid. */
static double value_of(const layer *self, const int32_t *placement)
{
    const eplb_refine_task *task = &self->task;
    int32_t count[MOST_EXPERTS] = {0};
    for (int32_t g = 0; g < task->gpus; g++) {
        for (int32_t s = task->first_slot[g]; s < task->first_slot[g + 1]; s++) {
            assert_in_range(placement[s], 0, task->experts - 1);
            for (int32_t t = task->first_slot[g]; t < s; t++) {
                assert_int_not_equal(placement[t], placement[s]);
            }
            count[placement[s]]++;
        }
    }
    for (int32_t e = 0; e < task->experts; e++) {
        assert_in_range(count[e], 1, task->max_replicas);
    }
    double mean = 0.0;
    double worst = 0.0;
    for (int32_t k = 0; k < task->scenarios; k++) {
        double largest = 0.0;
        for (int32_t g = 0; g < task->gpus; g++) {
            double sum = 0.0;
            for (int32_t s = task->first_slot[g]; s < task->first_slot[g + 1]; s++) {
                sum += self->loads[k * task->experts + placement[s]] / count[placement[s]];
            }
            largest = fmax(largest, sum);
        }
        mean += self->weights[k] * largest;
        worst = fmax(worst, largest);
    }
    return task->objective == EPLB_OBJECTIVE_MAX_OF_MAX ? worst : mean;
}

/* Random loads, GPUs of unlike size, a random valid placement and pins. */
static void draw_layer(layer *self, uint64_t *random)
{
    memset(self, 0, sizeof(*self));
    int32_t gpus = 3 + (int32_t)draw(random, MOST_GPUS - 2);
    for (int32_t g = 0; g < gpus; g++) {
        self->first_slot[g + 1] = self->first_slot[g] + 2 + (int32_t)draw(random, 3);
    }
    int32_t slots = self->first_slot[gpus];
    int32_t spare = 1 + (int32_t)draw(random, (uint32_t)(gpus < slots / 3 ? gpus : slots / 3));
    int32_t experts = slots - spare > MOST_EXPERTS ? MOST_EXPERTS : slots - spare;
    int32_t scenarios = 1 + (int32_t)draw(random, MOST_SCENARIOS);
    for (int32_t s = 0; s < slots; s++) {
        self->placement[s] = s % experts; /* no GPU has as many slots as there are experts */
        self->pinned[s] = draw(random, 6) == 0 ? 1 : 0;
    }
    for (int32_t k = 0; k < scenarios; k++) {
        double sum = 0.0;
        for (int32_t e = 0; e < experts; e++) {
            double unit = (double)draw(random, 1000) / 1000.0;
            self->loads[k * experts + e] = unit * unit * unit;
            sum += self->loads[k * experts + e];
        }
        for (int32_t e = 0; e < experts; e++) {
            self->loads[k * experts + e] *= (double)gpus / sum;
        }
        self->weights[k] = 1.0 / (double)scenarios;
    }
    connect(self, experts, gpus, scenarios);
    self->task.pinned = draw(random, 2) == 0 ? self->pinned : NULL;
    self->task.min_replicas = 1 + (int32_t)draw(random, 2);
    self->task.max_replicas = 2 + (int32_t)draw(random, 2);
    self->task.objective =
        draw(random, 2) == 0 ? EPLB_OBJECTIVE_MEAN_OF_MAX : EPLB_OBJECTIVE_MAX_OF_MAX;
}

static int64_t improve(const layer *self, int64_t nodes, int32_t *placement)
{
    eplb_hooks hooks = eplb_hooks_resolve(NULL);
    eplb_ilp_neighbourhood_options options;
    eplb_ilp_neighbourhood_options_init(&options);
    options.nodes = nodes;
    int64_t used = -1;
    eplb_error error;
    memcpy(placement, self->placement, sizeof(self->placement));
    assert_ok(eplb_ilp_neighbourhood(&hooks, &self->task, &options, placement, &used, &error),
              &error);
    assert_true(used >= 0 && used <= nodes);
    return used;
}

static bool has(const layer *self, const int32_t *placement, int32_t gpu, int32_t expert)
{
    for (int32_t s = self->first_slot[gpu]; s < self->first_slot[gpu + 1]; s++) {
        if (placement[s] == expert) {
            return true;
        }
    }
    return false;
}

static void assert_pins_kept(const layer *self, const int32_t *placement)
{
    for (int32_t g = 0; self->task.pinned != NULL && g < self->task.gpus; g++) {
        for (int32_t s = self->first_slot[g]; s < self->first_slot[g + 1]; s++) {
            assert_true(!self->pinned[s] || has(self, placement, g, self->placement[s]));
        }
    }
}

/* No expert goes below the fewest replicas that are asked for, where it had them. */
static void assert_fewest_kept(const layer *self, const int32_t *placement)
{
    int32_t before[MOST_EXPERTS] = {0};
    int32_t after[MOST_EXPERTS] = {0};
    for (int32_t s = 0; s < self->task.slots; s++) {
        before[self->placement[s]]++;
        after[placement[s]]++;
    }
    for (int32_t e = 0; e < self->task.experts; e++) {
        assert_true(after[e] >= before[e] || after[e] >= self->task.min_replicas);
    }
}

static void random_layers_become_no_worse_and_keep_the_rules(void **state)
{
    (void)state;
    uint64_t random = 1;
    int better = 0;
    int moved = 0;
    for (int round = 0; round < 30; round++) {
        layer self;
        draw_layer(&self, &random);
        int32_t placement[MOST_SLOTS];
        int32_t again[MOST_SLOTS];
        int64_t nodes = improve(&self, 60, placement);
        double before = value_of(&self, self.placement);
        double after = value_of(&self, placement);
        assert_true(after <= before);
        better += after < before - 1e-6 ? 1 : 0;
        assert_pins_kept(&self, placement);
        assert_fewest_kept(&self, placement);
        assert_int_equal(improve(&self, 60, again), nodes);
        assert_memory_equal(placement, again, (size_t)self.task.slots * sizeof(int32_t));
        for (int32_t s = 0; s < self.task.slots; s++) {
            moved += placement[s] != self.placement[s] ? 1 : 0;
        }
    }
    assert_true(better > 15);
    assert_true(moved > 100);
}

/* GPU g's experts together have load 1, with two hot ones in halves. */
static void perfect_layer(layer *self)
{
    const double loads[] = {1.4, 1.2, 0.7, 0.6, 0.55, 0.45, 0.3, 0.4, 0.3, 0.1};
    const int32_t placement[] = {0, 6, 0, 8, 1, 7, 1, 3, 2, 4, 9, 5};
    memset(self, 0, sizeof(*self));
    for (int32_t g = 0; g <= 6; g++) {
        self->first_slot[g] = 2 * g;
    }
    memcpy(self->loads, loads, sizeof(loads));
    memcpy(self->placement, placement, sizeof(placement));
    self->weights[0] = 1.0;
    connect(self, 10, 6, 1);
    self->task.lower_bound = 0.0;
}

static void swap(int32_t *a, int32_t *b)
{
    int32_t kept = *a;
    *a = *b;
    *b = kept;
}

static void damaged_placement_is_mended(void **state)
{
    (void)state;
    layer self;
    perfect_layer(&self);
    double perfect = value_of(&self, self.placement);
    int32_t placement[MOST_SLOTS];
    uint64_t random = 9;
    for (int round = 0; round < 8; round++) {
        perfect_layer(&self);
        for (int i = 0; i < 6; i++) {
            int32_t a = (int32_t)draw(&random, 12);
            int32_t b = (int32_t)draw(&random, 12);
            swap(&self.placement[a], &self.placement[b]);
            if (a / 2 == b / 2 || self.placement[a] == self.placement[a ^ 1] ||
                self.placement[b] == self.placement[b ^ 1]) {
                swap(&self.placement[a], &self.placement[b]);
            }
        }
        (void)improve(&self, 2000, placement);
        assert_true(value_of(&self, placement) <= perfect + 1e-9);
    }
}

/* Expert 0 has load 2 of 4 on one GPU; a second replica of it in the place of expert 4's, which is
 * cold and has two, mends that. */
static void replica_moves_from_a_cold_expert_to_a_hot_one(void **state)
{
    (void)state;
    const double loads[] = {2.0, 0.7, 0.7, 0.3, 0.1, 0.1, 0.1};
    const int32_t placement[] = {0, 3, 1, 4, 2, 4, 5, 6};
    layer self;
    memset(&self, 0, sizeof(self));
    for (int32_t g = 0; g <= 4; g++) {
        self.first_slot[g] = 2 * g;
    }
    memcpy(self.loads, loads, sizeof(loads));
    memcpy(self.placement, placement, sizeof(placement));
    self.weights[0] = 1.0;
    connect(&self, 7, 4, 1);
    int32_t found[MOST_SLOTS];
    (void)improve(&self, 500, found);
    assert_close(value_of(&self, found), 1.1, 1e-9);
    self.task.max_replicas = 1;
    self.task.min_replicas = 1;
    (void)improve(&self, 500, found);
    self.task.max_replicas = 2;
    assert_close(value_of(&self, found), 2.05, 1e-9); /* the hot expert was not to have two */
}

/* The hot expert must go to the GPU with one slot. */
static void gpus_of_unlike_size_exchange_their_experts(void **state)
{
    (void)state;
    const double loads[] = {1.0, 0.4, 0.3, 0.3};
    layer self;
    memset(&self, 0, sizeof(self));
    self.first_slot[1] = 1;
    self.first_slot[2] = 4;
    self.weights[0] = 1.0;
    memcpy(self.loads, loads, sizeof(loads));
    const int32_t placement[] = {1, 0, 2, 3};
    memcpy(self.placement, placement, sizeof(placement));
    connect(&self, 4, 2, 1);
    int32_t found[MOST_SLOTS];
    (void)improve(&self, 100, found);
    assert_close(value_of(&self, found), 1.0, 1e-9);
}

/* The part of the objective that is the placement's: the columns of free GPUs cost far less. */
static double worth(const eplb_ilp_model *model, const double *values)
{
    double sum = 0.0;
    for (int32_t j = 0; j < model->column_count; j++) {
        const eplb_ilp_column *column = &model->columns[j];
        sum += !column->is_integer && column->cost > 0.1 ? column->cost * values[j] : 0.0;
    }
    return sum;
}

/* Makes the program prefer some other arrangement, whatever its loads. */
static void favour_some(eplb_ilp_model *model, uint64_t *random)
{
    for (int32_t j = 0; j < model->column_count; j++) {
        if (model->columns[j].is_integer) {
            model->columns[j].cost = 0.5 * (double)draw(random, 5) - 1.0;
        }
    }
}

/* GLPK's objective must be what the library computes, and the start must be one of its solutions.
 */
static void program_says_what_a_placement_is_worth(void **state)
{
    (void)state;
    uint64_t random = 77;
    eplb_hooks hooks = eplb_hooks_resolve(NULL);
    for (int round = 0; round < 30; round++) {
        layer self;
        draw_layer(&self, &random);
        eplb_ilp_region region;
        eplb_error error;
        assert_ok(eplb_ilp_region_init(&region, &hooks, &self.task, self.placement, &error),
                  &error);
        assert_close(region.value, value_of(&self, self.placement), 1e-12);
        eplb_random drawn;
        eplb_random_seed(&drawn, (uint64_t)round);
        assert_true(eplb_ilp_region_choose(&region, round, &drawn));
        if (round % 2 == 0) { /* also with counts of experts that are on GPUs that stay */
            int32_t movers[4];
            for (int i = 0; i < 4; i++) {
                movers[i] = (int32_t)draw(&random, (uint32_t)self.task.experts);
            }
            assert_true(eplb_ilp_region_invite(&region, movers, 4));
        }
        eplb_ilp_model model = new_model(NULL);
        eplb_ilp_region_model(&region, &model);
        double *values = calloc((size_t)model.column_count, sizeof(double));
        assert_non_null(values);
        eplb_ilp_region_start(&region, &model, values);
        for (int64_t nodes = 0; nodes <= 40; nodes += 40) {
            eplb_ilp_limits limits;
            eplb_ilp_limits_init(&limits);
            limits.nodes = nodes;
            eplb_ilp_solution solution = {.values = values, .has_values = true};
            assert_ok(eplb_ilp_solve(&model, &limits, &solution, &error), &error);
            assert_true(solution.has_values);
            eplb_ilp_region_apply(&region, values);
            assert_close(worth(&model, values), value_of(&self, region.placement), 1e-6);
            favour_some(&model, &random);
        }
        free(values);
        eplb_ilp_model_free(&model);
        eplb_ilp_region_free(&region, &hooks);
    }
}

static void budget_and_stop_are_kept(void **state)
{
    (void)state;
    layer self;
    int32_t placement[MOST_SLOTS];
    int calls = 0;
    perfect_layer(&self);
    swap(&self.placement[1], &self.placement[4]);
    assert_int_equal(improve(&self, 0, placement), 0);
    assert_memory_equal(placement, self.placement, sizeof(placement));
    self.task.stop = stop_now;
    self.task.stop_context = &calls;
    assert_int_equal(improve(&self, 1000, placement), 0);
    assert_memory_equal(placement, self.placement, sizeof(placement));
    assert_int_equal(calls, 1);
}

static eplb_status improve_with(const eplb_hooks *hooks, void *context)
{
    layer self;
    perfect_layer(&self);
    swap(&self.placement[1], &self.placement[4]);
    int32_t placement[MOST_SLOTS];
    memcpy(placement, self.placement, sizeof(placement));
    eplb_ilp_neighbourhood_options options;
    eplb_ilp_neighbourhood_options_init(&options);
    options.nodes = 2;
    int64_t nodes;
    (void)context;
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_status status =
        eplb_ilp_neighbourhood(&resolved, &self.task, &options, placement, &nodes, NULL);
    if (status != EPLB_OK) {
        assert_memory_equal(placement, self.placement, sizeof(placement));
    }
    return status;
}

static void each_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    test_each_failing_allocation(improve_with, NULL);
}

TEST_MAIN(cmocka_unit_test(random_layers_become_no_worse_and_keep_the_rules),
          cmocka_unit_test(damaged_placement_is_mended),
          cmocka_unit_test(replica_moves_from_a_cold_expert_to_a_hot_one),
          cmocka_unit_test(gpus_of_unlike_size_exchange_their_experts),
          cmocka_unit_test(program_says_what_a_placement_is_worth),
          cmocka_unit_test(budget_and_stop_are_kept),
          cmocka_unit_test(each_failing_allocation_is_reported_and_leaks_nothing))
