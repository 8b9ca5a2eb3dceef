/* SPDX-License-Identifier: MIT */
/* Random small layers against an enumeration of all valid placements. */
#include "fewest.h"

#include "instance.h"

#define SMALL_EXPERTS 8
#define SMALL_GPUS 4
#define SMALL_SLOTS 3
#define SMALL_SCENARIOS 3
#define LAYERS 200
/* Instances with more combinations of what GPUs can hold are drawn again. */
#define MOST_COMBINATIONS 100000

typedef struct instance {
    int32_t experts;
    int32_t scenarios;
    eplb_objective objective;
    eplb_cluster *cluster;
    eplb_placement *current;
    eplb_load *load;
    double target;
} instance;

/* What is enumerated: a set of experts, as bits, for each GPU. */
typedef struct enumeration {
    const instance *in;
    uint32_t held[SMALL_GPUS]; /* by the current placement */
    uint32_t set[SMALL_GPUS];
    double row[SMALL_SCENARIOS][SMALL_EXPERTS];
    double weight[SMALL_SCENARIOS];
    int32_t rows;
    double best;      /* the least objective */
    int32_t fewest;   /* copies with which the target is reached; -1: never */
    double reachable; /* an objective that some placement has */
    eplb_random *random;
    int64_t seen;
} enumeration;

static bool is_alive(const instance *in, int32_t gpu)
{
    return eplb_cluster_gpu_alive(in->cluster, gpu) != 0;
}

static void count_replicas(const enumeration *n, int32_t *count)
{
    for (int32_t e = 0; e < n->in->experts; e++) {
        count[e] = 0;
        for (int32_t g = 0; g < eplb_cluster_gpus(n->in->cluster); g++) {
            count[e] += (int32_t)(n->set[g] >> e & 1u);
        }
    }
}

static double scenario_imbalance(const enumeration *n, const double *row, const int32_t *count)
{
    double total = 0.0;
    double largest = 0.0;
    for (int32_t e = 0; e < n->in->experts; e++) {
        total += row[e];
    }
    for (int32_t g = 0; g < eplb_cluster_gpus(n->in->cluster); g++) {
        double sum = 0.0;
        for (int32_t e = 0; e < n->in->experts; e++) {
            sum += (n->set[g] >> e & 1u) != 0 ? row[e] / count[e] : 0.0;
        }
        largest = fmax(largest, sum);
    }
    return total > 0.0 ? fmax(1.0, largest / total * eplb_cluster_live_gpus(n->in->cluster)) : 0.0;
}

static double objective_of(const enumeration *n, const int32_t *count)
{
    double sum = 0.0;
    double weights = 0.0;
    double largest = 0.0;
    for (int32_t k = 0; k < n->rows; k++) {
        double value = scenario_imbalance(n, n->row[k], count);
        weights += value > 0.0 ? n->weight[k] : 0.0;
        sum += n->weight[k] * value;
        largest = fmax(largest, value);
    }
    if (n->in->objective == EPLB_OBJECTIVE_MAX_OF_MAX) {
        return largest;
    }
    return weights > 0.0 ? sum / weights : 0.0;
}

static void look_at(enumeration *n)
{
    int32_t count[SMALL_EXPERTS];
    count_replicas(n, count);
    for (int32_t e = 0; e < n->in->experts; e++) {
        if (count[e] == 0) {
            return;
        }
    }
    double value = objective_of(n, count);
    n->best = fmin(n->best, value);
    n->seen++;
    if (n->random != NULL && eplb_random_below(n->random, (uint64_t)n->seen) == 0) {
        n->reachable = value;
    }
    int32_t copies = 0;
    for (int32_t g = 0; g < eplb_cluster_gpus(n->in->cluster); g++) {
        copies += __builtin_popcount(n->set[g] & ~n->held[g]);
    }
    if (value <= n->in->target * (1.0 + 1e-12) && (n->fewest < 0 || copies < n->fewest)) {
        n->fewest = copies;
    }
}

static void enumerate_from(enumeration *n, int32_t gpu)
{
    if (gpu == eplb_cluster_gpus(n->in->cluster)) {
        look_at(n);
        return;
    }
    int32_t slots = is_alive(n->in, gpu) ? eplb_cluster_gpu_slots(n->in->cluster, gpu) : 0;
    for (uint32_t set = 0; set < 1u << n->in->experts; set++) {
        if (__builtin_popcount(set) == slots) {
            n->set[gpu] = set;
            enumerate_from(n, gpu + 1);
        }
    }
}

static void read_rows(enumeration *n)
{
    const instance *in = n->in;
    bool is_sum = in->objective == EPLB_OBJECTIVE_SUM;
    n->rows = is_sum ? 1 : in->scenarios;
    for (int32_t k = 0; k < in->scenarios; k++) {
        double weight = eplb_load_scenario_weight(in->load, k);
        n->weight[k] = is_sum ? 1.0 : weight;
        for (int32_t e = 0; e < in->experts; e++) {
            double load = eplb_load_row(in->load, k, 0)[e];
            n->row[is_sum ? 0 : k][e] += is_sum && in->scenarios > 1 ? weight * load : load;
        }
    }
}

static enumeration enumerate(const instance *in, eplb_random *random)
{
    enumeration n = {.in = in, .best = INFINITY, .fewest = -1, .random = random};
    read_rows(&n);
    const int32_t *row = eplb_placement_row(in->current, 0);
    const eplb_cluster *from = eplb_placement_cluster(in->current);
    for (int32_t s = 0; s < eplb_placement_slots(in->current); s++) {
        if (row[s] >= 0) {
            n.held[gpu_of_slot(from, s)] |= 1u << row[s];
        }
    }
    enumerate_from(&n, 0);
    return n;
}

static double combinations(const instance *in)
{
    double all = 1.0;
    for (int32_t g = 0; g < eplb_cluster_gpus(in->cluster); g++) {
        int32_t slots = eplb_cluster_gpu_slots(in->cluster, g);
        for (int32_t i = 0; is_alive(in, g) && i < slots; i++) {
            all *= (double)(in->experts - i) / (i + 1);
        }
    }
    return all;
}

/* GPUs with 1 to 3 slots; in half of the cases one may be dead and slots differ. */
static eplb_cluster *draw_small_cluster(eplb_random *random, int32_t gpus)
{
    eplb_cluster *cluster = cluster_of(gpus, draw(random, 1, SMALL_SLOTS), 0);
    bool uneven = draw(random, 0, 1) == 1;
    for (int32_t g = 0; uneven && g < gpus; g++) {
        int32_t slots = draw(random, 0, SMALL_SLOTS);
        assert_ok(eplb_cluster_set_slots(cluster, g, slots, NULL), NULL);
    }
    if (gpus > 1 && draw(random, 0, 3) == 0) {
        assert_ok(eplb_cluster_set_alive(cluster, draw(random, 0, gpus - 1), 0, NULL), NULL);
    }
    return cluster;
}

/* Anything, or often a placement that is nearly even. */
static eplb_placement *draw_current(eplb_random *random, const eplb_cluster *cluster,
                                    int32_t experts)
{
    eplb_cluster *other = NULL;
    eplb_placement *current;
    if (draw(random, 0, 3) == 0) {
        other = draw_small_cluster(random, eplb_cluster_gpus(cluster));
    }
    assert_ok(
        eplb_placement_create(&current, NULL, other != NULL ? other : cluster, 1, experts, NULL),
        NULL);
    eplb_cluster_destroy(&other);
    int32_t row[SMALL_GPUS * SMALL_SLOTS];
    int32_t shift = draw(random, 0, experts - 1);
    for (int32_t s = 0; s < eplb_placement_slots(current); s++) {
        row[s] = draw(random, 0, 4) == 0 ? draw(random, -1, experts - 1) : (s + shift) % experts;
    }
    assert_ok(eplb_placement_set_row(current, 0, row, NULL), NULL);
    return current;
}

static eplb_load *draw_small_load(eplb_random *random, int32_t scenarios, int32_t experts)
{
    eplb_load *load;
    assert_ok(eplb_load_create(&load, NULL, scenarios, 1, experts, NULL), NULL);
    for (int32_t k = 0; k < scenarios; k++) {
        double row[SMALL_EXPERTS];
        draw_loads(random, row, experts);
        for (int32_t e = 0; e < experts; e++) { /* round numbers make ties */
            row[e] = draw(random, 0, 1) == 0 ? floor(row[e] / 100.0) * 100.0 : row[e];
        }
        assert_ok(eplb_load_set_row(load, k, 0, row, NULL), NULL);
        assert_ok(eplb_load_set_scenario(load, k, NULL, draw(random, 1, 5), NULL), NULL);
    }
    return load;
}

static void free_instance(instance *in)
{
    eplb_cluster_destroy(&in->cluster);
    eplb_placement_destroy(&in->current);
    eplb_load_destroy(&in->load);
}

static bool fits(const instance *in)
{
    if (eplb_cluster_live_slots(in->cluster) < in->experts) {
        return false;
    }
    for (int32_t g = 0; g < eplb_cluster_gpus(in->cluster); g++) {
        if (is_alive(in, g) && eplb_cluster_gpu_slots(in->cluster, g) > in->experts) {
            return false;
        }
    }
    return combinations(in) <= MOST_COMBINATIONS;
}

static instance draw_instance(eplb_random *random)
{
    instance in = {0};
    do {
        free_instance(&in);
        in.experts = draw(random, 1, SMALL_EXPERTS);
        in.scenarios = draw(random, 0, 1) == 0 ? 1 : draw(random, 2, SMALL_SCENARIOS);
        in.objective = (eplb_objective)draw(random, 0, 2);
        in.cluster = draw_small_cluster(random, draw(random, 1, SMALL_GPUS));
        in.current = draw_current(random, in.cluster, in.experts);
        in.load = draw_small_load(random, in.scenarios, in.experts);
    } while (!fits(&in));
    return in;
}

/* Any target, or exactly what some placement has, or a little less. */
static void draw_target(instance *in, eplb_random *random)
{
    in->target = 1.0 + eplb_random_unit(random);
    if (draw(random, 0, 2) > 0) {
        double value = enumerate(in, random).reachable;
        value *= draw(random, 0, 2) == 0 ? 1.0 - 1e-9 : 1.0;
        in->target = fmax(1.0, value);
    }
}

static void check_against_enumeration(const enumeration *n, int64_t nodes)
{
    const instance *in = n->in;
    eplb_fewest_task task = task_of(in->current, in->load, in->cluster, in->target);
    task.objective = (int32_t)in->objective;
    eplb_placement *placement;
    eplb_fewest_result result = solve_fewest(&task, nodes, &placement);
    eplb_placement_destroy(&placement);
    assert_true(result.imbalance_at_least <= n->best * (1.0 + 1e-11));
    if (n->fewest >= 0) {
        assert_int_not_equal(result.verdict, EPLB_FEWEST_IMPOSSIBLE);
        assert_true(result.copies_at_least <= n->fewest);
        assert_true(result.verdict != EPLB_FEWEST_PROVEN || result.copies == n->fewest);
    } else {
        assert_true(result.verdict == EPLB_FEWEST_IMPOSSIBLE ||
                    result.verdict == EPLB_FEWEST_NOT_REACHED);
    }
    if (nodes < 0) {
        assert_int_equal(result.stop, EPLB_STOP_OPTIMAL);
        assert_int_equal(result.verdict,
                         n->fewest >= 0 ? EPLB_FEWEST_PROVEN : EPLB_FEWEST_IMPOSSIBLE);
        assert_true(n->fewest >= 0 || fabs(result.imbalance - n->best) <= 1e-11 * n->best);
    }
}

static void fewest_copies_are_those_of_an_enumeration(void **state)
{
    (void)state;
    int32_t impossible = 0;
    FOR_EACH_SEED(seed, LAYERS)
    {
        eplb_random random;
        eplb_random_seed(&random, seed);
        instance in = draw_instance(&random);
        draw_target(&in, &random);
        enumeration n = enumerate(&in, NULL);
        impossible += n.fewest < 0 ? 1 : 0;
        check_against_enumeration(&n, -1);
        check_against_enumeration(&n, draw(&random, 0, 300));
        free_instance(&in);
    }
    print_message("%d of %d impossible\n", impossible, LAYERS);
    assert_true(impossible > LAYERS / 20 && impossible < LAYERS / 2);
}

TEST_MAIN(seeded_test(fewest_copies_are_those_of_an_enumeration))
