/* SPDX-License-Identifier: MIT */
#include "ilp/pair_options.h"

#include "base/memory.h"
#include "base/sort.h"

/* Larger layers are left alone: their programs would take minutes. */
#define MOST_OPTIONS (1 << 17)

static int32_t least_replicas(const eplb_refine_task *task)
{
    return task->min_replicas < task->gpus ? task->min_replicas : task->gpus;
}

/* Of one expert, when each other has the least. */
static int64_t most_replicas(const eplb_refine_task *task)
{
    int64_t rest = task->slots - ((int64_t)task->experts - 1) * least_replicas(task);
    return rest < task->max_replicas ? rest : task->max_replicas;
}

bool eplb_pair_options_apply(const eplb_refine_task *task)
{
    if (task->scenarios != 1 || task->slots != 2 * task->gpus ||
        most_replicas(task) < least_replicas(task) ||
        most_replicas(task) * task->experts > MOST_OPTIONS) {
        return false;
    }
    for (int32_t g = 0; g < task->gpus; g++) {
        if (task->first_slot[g + 1] - task->first_slot[g] != 2) {
            return false;
        }
    }
    return true;
}

eplb_status eplb_pair_options_init(eplb_pair_options *options, const eplb_hooks *hooks,
                                   const eplb_refine_task *task, eplb_error *error)
{
    *options = (eplb_pair_options){.hooks = *hooks,
                                   .task = task,
                                   .least = least_replicas(task),
                                   .most = (int32_t)most_replicas(task)};
    /* As T is at least the mean load, which is 1, shares in (T / 2, T] are at most that many. */
    options->most_levels = 2 * task->experts + task->gpus + 1;
    size_t experts = (size_t)task->experts;
    size_t shares = (size_t)options->most_levels;
    const eplb_array arrays[] = {
        EPLB_ARRAY(options->hot, shares),
        EPLB_ARRAY(options->option, experts * (size_t)options->most),
        EPLB_ARRAY(options->first, experts + 1),
        EPLB_ARRAY(options->order, shares),
        EPLB_ARRAY(options->scratch, shares),
        EPLB_ARRAY(options->share, shares),
    };
    return eplb_alloc_arrays(hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

void eplb_pair_options_free(eplb_pair_options *options)
{
    void *arrays[] = {options->hot,   options->option,  options->first,
                      options->order, options->scratch, options->share};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(&options->hooks, arrays[i]);
    }
}

/* Fewest replicas whose shares are at most T; one more than there can be when none are. */
static int32_t fewest_replicas(const eplb_pair_options *options, int32_t expert)
{
    double load = options->task->loads[expert];
    double needed = load / options->load;
    int32_t count = needed < (double)options->most ? (int32_t)needed : options->most;
    count = count > options->least ? count : options->least;
    while (count <= options->most && load / (double)count > options->load) {
        count++;
    }
    return count;
}

/* The distinct hot shares, rising. */
static void set_levels(eplb_pair_options *options)
{
    const eplb_refine_task *task = options->task;
    int32_t shares = 0;
    for (int32_t e = 0; e < task->experts; e++) {
        for (int32_t c = fewest_replicas(options, e);
             c <= options->most && shares < options->most_levels; c++) {
            double share = task->loads[e] / (double)c;
            if (share <= options->load / 2.0) {
                break;
            }
            options->order[shares] = shares;
            options->share[shares++] = share;
        }
    }
    eplb_sort_descending(options->order, shares, options->share, options->scratch);
    options->levels = 0;
    for (int32_t i = shares - 1; i >= 0; i--) {
        double share = options->share[options->order[i]];
        if (options->levels == 0 || share > options->hot[options->levels - 1]) {
            options->hot[options->levels++] = share;
        }
    }
}

/* How many hot shares are at most `x`. */
static int32_t count_up_to(const eplb_pair_options *options, double x)
{
    int32_t low = 0;
    int32_t high = options->levels;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (options->hot[middle] <= x) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int32_t level_of(const eplb_pair_options *options, double share)
{
    return share > options->load / 2.0 ? count_up_to(options, share)
                                       : -count_up_to(options, options->load - share);
}

bool eplb_pair_options_set(eplb_pair_options *options, double load)
{
    options->load = load;
    set_levels(options);
    int32_t length = 0;
    for (int32_t e = 0; e < options->task->experts; e++) {
        options->first[e] = length;
        for (int32_t c = fewest_replicas(options, e); c <= options->most; c++) {
            int32_t level = level_of(options, options->task->loads[e] / (double)c);
            bool is_new = length == options->first[e] || options->option[length - 1].level != level;
            if (is_new) {
                options->option[length++] =
                    (eplb_pair_option){.expert = e, .count = c, .level = level};
            }
            if (level == -options->levels) {
                break; /* it fits beside anything */
            }
        }
        if (length == options->first[e]) {
            return false;
        }
    }
    options->first[options->task->experts] = length;
    return true;
}

double eplb_pair_option_cost(const eplb_pair_option *option, const double *price)
{
    double extra = option->level > 0   ? price[option->level - 1]
                   : option->level < 0 ? -price[-option->level - 1]
                                       : 0.0;
    return (double)option->count * (1.0 + extra);
}
