/* SPDX-License-Identifier: MIT */
/* Which GPU gets which GPU's part of a plan from nothing. */
#include "planning.h"

#include <eplb/random.h>

#include "base/memory.h"
#include "model/cluster.h"
#include "model/placement.h"
#include "planner/plan.h"
#include "planner/rebalance.h"

#define EXPERTS 12
#define FEW_GPUS 6
#define FEW_SLOTS 3
#define ROUNDS 60

/* A job as far as renaming looks at it, of one layer. */
typedef struct fixture {
    eplb_rebalance_job job;
    eplb_rebalance_trace trace;
    eplb_plan plan;
    eplb_placement *planned;
    eplb_placement *current;
    eplb_cluster *cluster;
} fixture;

/* Distinct experts on each GPU. */
static eplb_placement *draw_placement(eplb_random *random, const eplb_cluster *cluster,
                                      int32_t experts)
{
    eplb_placement *placement;
    assert_ok(eplb_placement_create(&placement, NULL, cluster, 1, experts, NULL), NULL);
    int32_t *row = eplb_placement_row_of(placement, 0);
    for (int32_t g = 0; g < cluster->gpus; g++) {
        int32_t first = cluster->first_slot[g];
        for (int32_t s = first; s < cluster->first_slot[g + 1]; s++) {
            bool is_new = false;
            while (!is_new) {
                row[s] = (int32_t)eplb_random_below(random, (uint64_t)experts);
                is_new = true;
                for (int32_t t = first; t < s; t++) {
                    is_new = is_new && row[t] != row[s];
                }
            }
        }
    }
    return placement;
}

static void begin(fixture *f, eplb_random *random, eplb_cluster *cluster, int32_t experts)
{
    *f = (fixture){.cluster = cluster};
    f->planned = draw_placement(random, cluster, experts);
    f->current = draw_placement(random, cluster, experts);
    f->plan.placement = f->planned;
    f->job = (eplb_rebalance_job){.hooks = eplb_hooks_resolve(NULL),
                                  .cluster = cluster,
                                  .current = f->current,
                                  .plan = &f->plan,
                                  .traces = &f->trace};
    assert_ok(eplb_shape_init(&f->job.shape, &f->job.hooks, cluster, experts, NULL), NULL);
    f->trace.fresh = calloc((size_t)f->job.shape.slots, sizeof(*f->trace.fresh));
}

static void end(fixture *f)
{
    free(f->trace.fresh);
    eplb_shape_free(&f->job.shape, &f->job.hooks);
    eplb_placement_destroy(&f->planned);
    eplb_placement_destroy(&f->current);
    eplb_cluster_destroy(&f->cluster);
}

static bool holds(const fixture *f, int32_t gpu, int32_t expert)
{
    const int32_t *row = eplb_placement_row(f->current, 0);
    for (int32_t s = f->cluster->first_slot[gpu]; s < f->cluster->first_slot[gpu + 1]; s++) {
        if (row[s] == expert) {
            return true;
        }
    }
    return false;
}

static bool node_holds(const fixture *f, int32_t node, int32_t expert)
{
    for (int32_t g = 0; g < f->cluster->gpus; g++) {
        if (f->cluster->gpu[g].node == node && holds(f, g, expert)) {
            return true;
        }
    }
    return false;
}

typedef struct price {
    int32_t copies;
    int32_t remote; /* of them: of experts that no GPU of the node holds */
} price;

/* Adds what a GPU lacks of a row's slots. */
static void add_price(const fixture *f, int32_t gpu, const int32_t *slots, price *p)
{
    for (int32_t s = 0; s < f->cluster->gpu[gpu].slots; s++) {
        bool is_new = !holds(f, gpu, slots[s]);
        p->copies += is_new;
        p->remote += is_new && !node_holds(f, f->cluster->gpu[gpu].node, slots[s]);
    }
}

static price price_of(const fixture *f, const int32_t *row)
{
    price p = {0};
    for (int32_t g = 0; g < f->cluster->gpus; g++) {
        add_price(f, g, row + f->cluster->first_slot[g], &p);
    }
    return p;
}

static bool is_less(price a, price b)
{
    return a.copies < b.copies || (a.copies == b.copies && a.remote < b.remote);
}

/* The best of all ways to number the GPUs, where the first `gpu` ones have their parts. */
static price best_from(const fixture *f, int32_t gpu, uint32_t used, price so_far)
{
    price best = {.copies = INT32_MAX};
    for (int32_t g = 0; g < f->cluster->gpus && gpu < f->cluster->gpus; g++) {
        if ((used >> g & 1) == 0) {
            price p = so_far;
            add_price(f, gpu, eplb_placement_row(f->planned, 0) + f->cluster->first_slot[g], &p);
            p = best_from(f, gpu + 1, used | 1u << g, p);
            best = is_less(p, best) ? p : best;
        }
    }
    return gpu < f->cluster->gpus ? best : so_far;
}

/* Every planned GPU's part is on one GPU. */
static void assert_renamed(const fixture *f)
{
    int32_t gpus = f->cluster->gpus;
    bool *found = calloc((size_t)gpus, sizeof(*found));
    for (int32_t g = 0; g < gpus; g++) {
        const int32_t *part = eplb_placement_row(f->planned, 0) + f->cluster->first_slot[g];
        int32_t h = 0;
        while (h < gpus && (found[h] || f->cluster->gpu[h].slots != f->cluster->gpu[g].slots ||
                            memcmp(f->trace.fresh + f->cluster->first_slot[h], part,
                                   (size_t)f->cluster->gpu[g].slots * sizeof(*part)) != 0)) {
            h++;
        }
        assert_true(h < gpus);
        found[h] = true;
    }
    free(found);
}

static void fewest_copies_come_first_and_then_fewest_from_other_nodes(void **state)
{
    (void)state;
    eplb_random random;
    eplb_random_seed(&random, 7);
    int32_t better = 0;
    for (int32_t i = 0; i < ROUNDS; i++) {
        fixture f;
        eplb_cluster *cluster = cluster_of(FEW_GPUS, FEW_SLOTS, 2 + i % 2);
        if (i % 3 == 0) { /* nodes in no order */
            assert_ok(eplb_cluster_set_node(cluster, 1, 2, NULL), NULL);
        }
        begin(&f, &random, cluster, EXPERTS);
        assert_ok(eplb_rebalance_rename(&f.job, 0, NULL, NULL), NULL);
        assert_renamed(&f);
        price best = best_from(&f, 0, 0, (price){0});
        price p = price_of(&f, f.trace.fresh);
        assert_int_equal(p.copies, best.copies);
        assert_int_equal(p.remote, best.remote);
        better += is_less(p, price_of(&f, eplb_placement_row(f.planned, 0)));
        end(&f);
    }
    assert_true(better > ROUNDS / 2);
}

static void gpus_change_numbers_with_those_of_as_many_slots_only(void **state)
{
    (void)state;
    eplb_random random;
    eplb_random_seed(&random, 8);
    for (int32_t i = 0; i < ROUNDS; i++) {
        fixture f;
        eplb_cluster *cluster = cluster_of(FEW_GPUS, FEW_SLOTS, 2);
        assert_ok(eplb_cluster_set_slots(cluster, i % FEW_GPUS, FEW_SLOTS - 1, NULL), NULL);
        begin(&f, &random, cluster, EXPERTS);
        assert_ok(eplb_rebalance_rename(&f.job, 0, NULL, NULL), NULL);
        assert_renamed(&f);
        end(&f);
    }
}

/* Exchanges the parts of GPUs at random. */
static void shuffle_parts(eplb_random *random, const eplb_cluster *cluster, int32_t *row)
{
    for (int32_t g = cluster->gpus - 1; g > 0; g--) {
        int32_t h = (int32_t)eplb_random_below(random, (uint64_t)g + 1);
        for (int32_t s = 0; s < cluster->gpu[g].slots; s++) {
            int32_t expert = row[cluster->first_slot[g] + s];
            row[cluster->first_slot[g] + s] = row[cluster->first_slot[h] + s];
            row[cluster->first_slot[h] + s] = expert;
        }
    }
}

/* More than the best assignment is made for. */
#define MANY_GPUS 600

static void many_gpus_find_their_parts_again(void **state)
{
    (void)state;
    eplb_random random;
    eplb_random_seed(&random, 9);
    for (int32_t gpus_per_node = 0; gpus_per_node <= 24; gpus_per_node += 8) {
        fixture f;
        begin(&f, &random, cluster_of(MANY_GPUS, FEW_SLOTS, gpus_per_node), 256);
        int32_t *row = eplb_placement_row_of(f.current, 0);
        memcpy(row, eplb_placement_row(f.planned, 0), MANY_GPUS * FEW_SLOTS * sizeof(*row));
        shuffle_parts(&random, f.cluster, row);
        row[5] = -1;
        row[9] = row[10];
        assert_ok(eplb_rebalance_rename(&f.job, 0, NULL, NULL), NULL);
        assert_renamed(&f);
        assert_int_equal(price_of(&f, f.trace.fresh).copies, 2);
        end(&f);
    }
}

static void many_gpus_share_more_than_with_the_numbers_they_had(void **state)
{
    (void)state;
    eplb_random random;
    eplb_random_seed(&random, 10);
    for (int32_t gpus_per_node = 0; gpus_per_node <= 300; gpus_per_node += 100) {
        fixture f;
        begin(&f, &random, cluster_of(MANY_GPUS, FEW_SLOTS, gpus_per_node), 256);
        assert_ok(eplb_rebalance_rename(&f.job, 0, NULL, NULL), NULL);
        assert_renamed(&f);
        price with = price_of(&f, f.trace.fresh);
        price without = price_of(&f, eplb_placement_row(f.planned, 0));
        print_message("%d a node: %d copies, %d between nodes; %d, %d with numbers kept\n",
                      gpus_per_node, with.copies, with.remote, without.copies, without.remote);
        assert_true(10 * with.copies < 7 * without.copies);
        end(&f);
    }
}

static eplb_status rename_with(const eplb_hooks *hooks, void *context)
{
    eplb_rebalance_job job = ((fixture *)context)->job;
    job.hooks = *hooks;
    return eplb_rebalance_rename(&job, 0, NULL, NULL);
}

static void a_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    eplb_random random;
    eplb_random_seed(&random, 11);
    fixture f;
    begin(&f, &random, cluster_of(MANY_GPUS, FEW_SLOTS, 100), 256);
    test_each_failing_allocation(rename_with, &f);
    end(&f);
}

TEST_MAIN(cmocka_unit_test(fewest_copies_come_first_and_then_fewest_from_other_nodes),
          cmocka_unit_test(gpus_change_numbers_with_those_of_as_many_slots_only),
          cmocka_unit_test(many_gpus_find_their_parts_again),
          cmocka_unit_test(many_gpus_share_more_than_with_the_numbers_they_had),
          cmocka_unit_test(a_failed_allocation_is_an_error_and_leaks_nothing))
