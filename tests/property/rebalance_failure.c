/* SPDX-License-Identifier: MIT */
/* Real workloads whose GPUs die: what was lost is copied, and what pays beyond it. */
#include "deepseek_v3.h"
#include "rebalancing.h"

enum { GPUS = 32, SLOTS_PER_GPU = 9, LAYERS = 58, GPU_STEP = 11 };

/* Sums over workloads, dead GPUs and layers. */
typedef struct tally {
    int32_t layers;
    int64_t lost; /* experts whose last replica died */
    int64_t copies;
    double required; /* imbalance with the lost ones alone */
    double imbalance;
    double fresh;
    int64_t fresh_copies;
} tally;

/* Only what was lost is required, and each further copy earns its price. */
static void check_layers(tally *t, const eplb_plan *plan, const eplb_placement *current,
                         const eplb_cluster *cluster, double price)
{
    for (int32_t l = 0; l < LAYERS; l++) {
        eplb_plan_layer layer = layer_of(plan, l);
        eplb_rebalance_layer more = rebalance_layer_of(plan, l);
        int32_t lost;
        assert_ok(eplb_placement_lost_experts(current, cluster, l, NULL, 0, &lost, NULL), NULL);
        assert_int_equal(more.copies_required, lost);
        assert_true(layer.copies >= lost);
        double cost = layer.imbalance_after + price * (double)(layer.copies - lost);
        assert_true(cost <= more.required_imbalance * (1.0 + 1e-9));
        t->layers++;
        t->lost += lost;
        t->copies += layer.copies;
        t->required += more.required_imbalance;
        t->imbalance += layer.imbalance_after;
        t->fresh += more.fresh_imbalance;
        t->fresh_copies += more.fresh_copies;
    }
}

static tally kill_gpus(double price)
{
    tally t = {0};
    for (int32_t file = 0; file < DEEPSEEK_V3_FILES; file += 4) {
        eplb_load *load = deepseek_v3_or_skip(file, 1);
        eplb_cluster *cluster = cluster_of(GPUS, SLOTS_PER_GPU, 0);
        eplb_plan *before = plan_of(load, cluster, NULL, NULL);
        eplb_rebalance_options options = rebalance_defaults();
        options.copy_price = price;
        for (int32_t gpu = file % GPU_STEP; gpu < GPUS; gpu += GPU_STEP) {
            assert_ok(eplb_cluster_set_alive(cluster, gpu, 0, NULL), NULL);
            const eplb_placement *current = eplb_plan_placement(before);
            eplb_plan *plan = rebalance_of(load, cluster, current, NULL, &options);
            check_layers(&t, plan, current, cluster, price);
            eplb_plan_destroy(&plan);
            assert_ok(eplb_cluster_set_alive(cluster, gpu, 1, NULL), NULL);
        }
        eplb_plan_destroy(&before);
        eplb_cluster_destroy(&cluster);
        eplb_load_destroy(&load);
    }
    print_message("price %g, %d layers: lost %.2f a layer, copied %.2f; %.4f -> %.4f; a new plan, "
                  "renamed: %.1f copies, %.4f\n",
                  price, t.layers, (double)t.lost / t.layers, (double)t.copies / t.layers,
                  t.required / t.layers, t.imbalance / t.layers, (double)t.fresh_copies / t.layers,
                  t.fresh / t.layers);
    return t;
}

static void lost_experts_live_on_and_further_copies_pay(void **state)
{
    (void)state;
    tally t = kill_gpus(EPLB_COPY_PRICE);
    assert_true(t.lost > 0);
    assert_true(t.copies < t.fresh_copies / 4);
    assert_true(t.imbalance < t.fresh + 0.02 * t.layers);
}

static void dear_copies_are_of_lost_experts_only(void **state)
{
    (void)state;
    tally t = kill_gpus(10.0);
    assert_int_equal(t.copies, t.lost);
}

TEST_MAIN(cmocka_unit_test(lost_experts_live_on_and_further_copies_pay),
          cmocka_unit_test(dear_copies_are_of_lost_experts_only))
