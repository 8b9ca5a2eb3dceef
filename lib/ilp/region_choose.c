/* SPDX-License-Identifier: MIT */
#include "ilp/region_choose.h"

#include <math.h>

/* Programs have about so many binary columns at most. Larger ones gained less in more time: on
 * three layers of 288 slots on 144 GPUs and nine scenarios 60 gained 0.009 in 0.8 s, 120 0.004
 * in 1.7 s, 250 nothing in 4.5 s. That was with 2000 nodes for 60 and 1000 for the others, and
 * before redundant rows were left out of the programs: it is a hint, not a comparison at equal
 * cost. */
#define MOST_BINARIES 60

/* The hottest expert, which may get a replica, and one that may lose one. */
#define MOVERS 2

/* How many are drawn for each that is taken. */
#define DRAWN 4

static double load_of(const eplb_ilp_region *region, int32_t gpu, int32_t scenario)
{
    return region->load[(size_t)gpu * (size_t)region->task->scenarios + (size_t)scenario];
}

/* The first of the GPUs with the largest load. */
static int32_t hottest(const eplb_ilp_region *region, int32_t scenario)
{
    int32_t gpu = 0;
    for (int32_t g = 1; g < region->task->gpus; g++) {
        gpu = load_of(region, g, scenario) > load_of(region, gpu, scenario) ? g : gpu;
    }
    return gpu;
}

static double share_of(const eplb_ilp_region *region, int32_t expert, int32_t count,
                       int32_t scenario)
{
    const eplb_refine_task *task = region->task;
    return task->loads[(size_t)scenario * (size_t)task->experts + (size_t)expert] / (double)count;
}

static int32_t heaviest_expert(const eplb_ilp_region *region, int32_t gpu, int32_t scenario)
{
    const eplb_refine_task *task = region->task;
    int32_t heaviest = region->placement[task->first_slot[gpu]];
    for (int32_t s = task->first_slot[gpu]; s < task->first_slot[gpu + 1]; s++) {
        int32_t expert = region->placement[s];
        if (share_of(region, expert, region->count[expert], scenario) >
            share_of(region, heaviest, region->count[heaviest], scenario)) {
            heaviest = expert;
        }
    }
    return heaviest;
}

static bool is_taken(const eplb_ilp_region *region, int32_t gpu)
{
    for (int32_t i = 0; i < region->free_gpus; i++) {
        if (region->gpu[i] == gpu) {
            return true;
        }
    }
    return false;
}

/* Nothing where it is free already, or there are enough. */
static void take(eplb_ilp_region *region, int32_t gpu, int32_t wanted)
{
    if (region->free_gpus < wanted && !is_taken(region, gpu)) {
        region->gpu[region->free_gpus++] = gpu;
    }
}

/* One of the GPUs that are not taken, of which there is one at least. */
static int32_t draw_other(const eplb_ilp_region *region, eplb_random *random)
{
    uint64_t others = (uint64_t)(region->task->gpus - region->free_gpus);
    int32_t left = (int32_t)eplb_random_below(random, others);
    int32_t gpu = 0;
    while (is_taken(region, gpu) || left-- > 0) {
        gpu++;
    }
    return gpu;
}

/* How many free GPUs make a program that is small enough: a guest for each slot, and the movers
 * with up to two counts more. */
static int32_t free_gpus_wanted(const eplb_refine_task *task)
{
    int32_t slots = (task->slots + task->gpus - 1) / task->gpus;
    int32_t most = task->gpus < EPLB_ILP_REGION_GPUS ? task->gpus : EPLB_ILP_REGION_GPUS;
    int32_t wanted = 2;
    while (wanted < most && ((wanted + 1) * slots + 3) * (wanted + 1) <= MOST_BINARIES) {
        wanted++;
    }
    return wanted;
}

/* How near a GPU is to the largest load in the scenario in which it is nearest. */
static double nearness(const eplb_ilp_region *region, int32_t gpu)
{
    double nearest = -INFINITY;
    for (int32_t k = 0; k < region->task->scenarios; k++) {
        nearest = fmax(nearest, load_of(region, gpu, k) - region->largest[k]);
    }
    return nearest;
}

/* The one of a few that are drawn which is far from the largest loads. */
static int32_t draw_light(const eplb_ilp_region *region, eplb_random *random)
{
    int32_t lightest = -1;
    for (int32_t i = 0; i < DRAWN; i++) {
        int32_t gpu = draw_other(region, random);
        if (lightest < 0 || nearness(region, gpu) < nearness(region, lightest)) {
            lightest = gpu;
        }
    }
    return lightest;
}

/* How far an expert with one replica less is from the largest loads by itself. */
static double nearness_without(const eplb_ilp_region *region, int32_t expert)
{
    double nearest = -INFINITY;
    for (int32_t k = 0; k < region->task->scenarios; k++) {
        nearest = fmax(nearest,
                       share_of(region, expert, region->count[expert] - 1, k) - region->largest[k]);
    }
    return nearest;
}

/* Of a few with several replicas that are drawn, one that can spare one; -1: none drawn. */
static int32_t draw_giver(const eplb_ilp_region *region, eplb_random *random)
{
    int32_t found = -1;
    int32_t drawn = 0;
    for (int32_t i = 0; i < region->task->slots && drawn < DRAWN; i++) {
        int32_t slot = (int32_t)eplb_random_below(random, (uint64_t)region->task->slots);
        int32_t expert = region->placement[slot];
        if (region->count[expert] < 2) {
            continue;
        }
        drawn++;
        if (found < 0 || nearness_without(region, expert) < nearness_without(region, found)) {
            found = expert;
        }
    }
    return found;
}

static void take_gpus_with(eplb_ilp_region *region, int32_t expert, int32_t wanted)
{
    const eplb_refine_task *task = region->task;
    for (int32_t g = 0; g < task->gpus; g++) {
        for (int32_t s = task->first_slot[g]; s < task->first_slot[g + 1]; s++) {
            if (region->placement[s] == expert) {
                take(region, g, wanted);
            }
        }
    }
}

bool eplb_ilp_region_choose(eplb_ilp_region *region, int64_t turn, eplb_random *random)
{
    const eplb_refine_task *task = region->task;
    int32_t wanted = free_gpus_wanted(task);
    if (task->gpus < 2) {
        return false;
    }
    int32_t scenario = (int32_t)(turn % task->scenarios);
    int32_t hot = hottest(region, scenario);
    int32_t movers[MOVERS] = {heaviest_expert(region, hot, scenario), draw_giver(region, random)};
    region->free_gpus = 0;
    take(region, hot, wanted);
    if (movers[1] >= 0) {
        take_gpus_with(region, movers[1], wanted);
    }
    while (region->free_gpus < wanted) {
        take(region, draw_light(region, random), wanted);
    }
    return eplb_ilp_region_invite(region, movers, movers[1] >= 0 ? MOVERS : MOVERS - 1);
}
