/* SPDX-License-Identifier: MIT */
/* Real loads: from a plan for one workload to another's, 288 slots on 32 GPUs. */
#include "fewest.h"

#include "property/deepseek_v3.h"

static void few_copies_lead_from_one_real_workload_to_another(void **state)
{
    (void)state;
    eplb_load *before = deepseek_v3_or_skip(0, 1);
    eplb_load *after = deepseek_v3_or_skip(5, 1);
    eplb_cluster *cluster = cluster_of(32, 9, 0);
    eplb_plan *current = plan_of(before, cluster, NULL, NULL);
    eplb_plan *fresh = plan_of(after, cluster, NULL, NULL);
    for (int32_t layer = 0; layer < eplb_load_layers(after); layer += 29) {
        eplb_fewest_task task = task_of(eplb_plan_placement(current), after, cluster, 1.05);
        task.current_row = layer;
        task.layer = layer;
        eplb_placement *placement;
        eplb_fewest_result result = solve_fewest(&task, 5000000, &placement);
        eplb_placement_destroy(&placement);
        task.start = eplb_plan_placement(fresh);
        task.start_row = layer;
        int64_t copies;
        assert_ok(eplb_placement_copies(task.current, task.start, layer, &copies, NULL), NULL);
        assert_true(result.copies <= copies);
        result = solve_fewest(&task, 5000000, &placement);
        assert_int_equal(result.verdict, EPLB_FEWEST_REACHED);
        assert_true(result.copies <= copies);
        eplb_placement_destroy(&placement);
    }
    eplb_plan_destroy(&current);
    eplb_plan_destroy(&fresh);
    eplb_cluster_destroy(&cluster);
    eplb_load_destroy(&before);
    eplb_load_destroy(&after);
}

TEST_MAIN(cmocka_unit_test(few_copies_lead_from_one_real_workload_to_another))
