/* SPDX-License-Identifier: MIT */
/* Real workloads in noisy steps under a plan made for them: the trigger never fires, however hot
 * their hottest experts are. */
#include "deepseek_v3.h"
#include "traffic.h"

enum { GPUS = 32, SLOTS_PER_GPU = 9, MINUTES = 8, LAYER_STEP = 6 };

/* Minutes in which the trigger asks for a plan. */
static int count_alarms(traffic *t, double *hottest)
{
    eplb_trigger *trigger;
    assert_ok(eplb_trigger_create(&trigger, NULL, NULL, NULL), NULL);
    int alarms = 0;
    for (int minute = 0; minute < MINUTES; minute++) {
        eplb_observation seen = traffic_observe(t);
        eplb_verdict verdict = {.struct_size = sizeof(verdict)};
        assert_ok(eplb_trigger_observe(trigger, 60.0 * minute, &seen, &verdict, NULL), NULL);
        alarms += verdict.decision == EPLB_DECISION_REBALANCE ? 1 : 0;
        *hottest = fmax(*hottest, seen.hottest_ratio);
    }
    eplb_trigger_destroy(&trigger);
    return alarms;
}

static void real_workloads_need_no_further_plan(void **state)
{
    (void)state;
    double hottest = 0.0;
    int alarms_before = 0;
    for (int32_t file = 0; file < DEEPSEEK_V3_FILES; file++) {
        eplb_load *load = deepseek_v3_or_skip(file, 1);
        for (int32_t l = file % LAYER_STEP; l < eplb_load_layers(load); l += LAYER_STEP) {
            traffic t;
            const double *row = eplb_load_row(load, 0, l);
            traffic_init(&t, eplb_load_experts(load), row, GPUS, SLOTS_PER_GPU);
            if (l == file % LAYER_STEP) {
                alarms_before += count_alarms(&t, &hottest);
            }
            assert_ok(eplb_load_set_row(t.load, 0, 0, row, NULL), NULL);
            traffic_replan(&t);
            assert_int_equal(count_alarms(&t, &hottest), 0);
            traffic_free(&t);
        }
        eplb_load_destroy(&load);
    }
    assert_true(alarms_before > 0); /* the engines' first spread is another matter */
    assert_true(hottest > 5.0);
}

TEST_MAIN(cmocka_unit_test(real_workloads_need_no_further_plan))
