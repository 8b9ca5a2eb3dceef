/* SPDX-License-Identifier: MIT */
#include <eplb/fewest.h>

const char *eplb_fewest_verdict_name(eplb_fewest_verdict verdict)
{
    switch (verdict) {
    case EPLB_FEWEST_PROVEN:
        return "proven";
    case EPLB_FEWEST_REACHED:
        return "reached";
    case EPLB_FEWEST_IMPOSSIBLE:
        return "impossible";
    case EPLB_FEWEST_NOT_REACHED:
        return "not_reached";
    }
    return "unknown";
}

void eplb_fewest_task_init(eplb_fewest_task *task)
{
    if (task != NULL) {
        *task = (eplb_fewest_task){
            .struct_size = sizeof(*task), .objective = EPLB_OBJECTIVE_MEAN_OF_MAX, .target = 1.0};
    }
}
