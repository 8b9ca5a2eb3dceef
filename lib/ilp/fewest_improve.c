/* SPDX-License-Identifier: MIT */
/* Fewer copies than the best placement so far has: neighbourhoods of a few GPUs, one of them with
 * copies, others drawn. */
#include "ilp/fewest_part.h"

#include <string.h>

#include <eplb/random.h>

#include "base/memory.h"

/* So many draws for each GPU with copies, without any success, are the end. */
#define ROUNDS 24
#define STRICT 2
/* Of the other GPUs so many in a hundred are such with copies, too. */
#define COPIED 70
/* Of the parts so many in a hundred have one GPU less than they could. */
#define SMALLER 50

int32_t eplb_fewest_part_gpus(const eplb_fewest_layer *layer)
{
    int32_t largest = 1;
    for (int32_t g = 0; g < layer->gpus; g++) {
        int32_t slots = layer->first[g + 1] - layer->first[g];
        largest = slots > largest ? slots : largest;
    }
    int32_t gpus = layer->gpus < EPLB_FEWEST_PART_GPUS ? layer->gpus : EPLB_FEWEST_PART_GPUS;
    while (gpus > 1 && (int64_t)gpus * gpus * largest > EPLB_FEWEST_FIXED_BINARIES) {
        gpus--;
    }
    return gpus;
}

static int32_t draw_gpu(eplb_random *random, const int32_t *copied, int32_t copied_count,
                        int32_t gpus)
{
    bool among_copied = eplb_random_below(random, 100) < COPIED;
    int32_t count = among_copied ? copied_count : gpus;
    int32_t index = (int32_t)eplb_random_below(random, (uint64_t)count);
    return among_copied ? copied[index] : index;
}

static void draw_part(eplb_fewest_part *part, eplb_random *random, int32_t seed,
                      const int32_t *copied, int32_t copied_count)
{
    int32_t gpus = eplb_fewest_part_gpus(part->state->layer);
    gpus -= gpus > 2 && eplb_random_below(random, 100) < SMALLER ? 1 : 0;
    part->gpus = 1;
    part->gpu[0] = seed;
    while (part->gpus < gpus) {
        int32_t g = draw_gpu(random, copied, copied_count, part->state->layer->gpus);
        if (!eplb_fewest_part_has(part, g)) {
            part->gpu[part->gpus++] = g;
        } else if (part->gpus >= copied_count) {
            /* Perhaps all with copies are in: any other one. */
            for (g = 0; eplb_fewest_part_has(part, g); g++) {
            }
            part->gpu[part->gpus++] = g;
        }
    }
}

static int32_t copies_inside(const eplb_fewest_part *part)
{
    int32_t copies = 0;
    for (int32_t i = 0; i < part->gpus; i++) {
        copies += eplb_fewest_copies_on(part->state, part->gpu[i]);
    }
    return copies;
}

/* Fewer copies in one part: FOUND when that made a better placement. */
static eplb_fewest_end improve_part(eplb_fewest_part *part, eplb_fewest_layer *layer,
                                    int64_t memory_bytes, eplb_error *error)
{
    eplb_fewest_state *state = part->state;
    int64_t before = layer->best_copies;
    int32_t less = part->noise == NULL ? 1 : 0;
    eplb_fewest_part_choose_counts(part);
    layer->failure = eplb_fewest_part_build(part, copies_inside(part) - less, error);
    if (layer->failure != EPLB_OK) {
        return EPLB_FEWEST_FAILED;
    }
    eplb_fewest_end end = eplb_fewest_part_solve(part, layer, memory_bytes, error);
    if (end != EPLB_FEWEST_FOUND) {
        return end;
    }
    double value;
    layer->failure = eplb_fewest_offer(layer, state->chosen, &value, error);
    if (layer->failure != EPLB_OK) {
        return EPLB_FEWEST_FAILED;
    }
    if (value > layer->limit) {
        memcpy(state->chosen, layer->best, (size_t)layer->slots * sizeof(*layer->best));
        eplb_fewest_state_index(state);
    }
    return layer->best_copies < before ? EPLB_FEWEST_FOUND : EPLB_FEWEST_NOTHING;
}

/* One neighbourhood for each GPU with copies. */
static eplb_fewest_end improve_round(eplb_fewest_part *part, eplb_fewest_layer *layer,
                                     int32_t *copied, eplb_random *random, int64_t memory_bytes,
                                     eplb_error *error)
{
    int32_t count = 0;
    for (int32_t g = 0; g < layer->gpus; g++) {
        if (eplb_fewest_copies_on(part->state, g) > 0) {
            copied[count++] = g;
        }
    }
    bool found = false;
    for (int32_t i = 0; i < count; i++) {
        if (!eplb_fewest_spend(layer, 0)) {
            return EPLB_FEWEST_ENDED;
        }
        draw_part(part, random, copied[i], copied, count);
        eplb_fewest_end end = copies_inside(part) > 0
                                  ? improve_part(part, layer, memory_bytes, error)
                                  : EPLB_FEWEST_NOTHING;
        if (end >= EPLB_FEWEST_ENDED) {
            return end;
        }
        found = found || end == EPLB_FEWEST_FOUND;
    }
    return found ? EPLB_FEWEST_FOUND : EPLB_FEWEST_NOTHING;
}

static eplb_status improve(eplb_fewest_layer *layer, eplb_fewest_state *state, int32_t *copied,
                           int64_t memory_bytes, eplb_error *error)
{
    eplb_fewest_part part;
    eplb_status status = eplb_fewest_part_init(&part, state, error);
    memcpy(state->chosen, layer->best, (size_t)layer->slots * sizeof(*layer->best));
    eplb_fewest_state_index(state);
    eplb_random random;
    eplb_random_seed(&random, 1);
    int32_t idle = 0;
    while (status == EPLB_OK && idle < ROUNDS) {
        part.noise = idle >= STRICT ? &random : NULL;
        eplb_fewest_end end = improve_round(&part, layer, copied, &random, memory_bytes, error);
        status = end == EPLB_FEWEST_FAILED ? layer->failure : EPLB_OK;
        idle = end == EPLB_FEWEST_FOUND ? 0 : end == EPLB_FEWEST_ENDED ? ROUNDS : idle + 1;
    }
    eplb_fewest_part_free(&part);
    return status;
}

eplb_status eplb_fewest_improve(eplb_fewest_layer *layer, int64_t memory_bytes, eplb_error *error)
{
    if (eplb_fewest_part_gpus(layer) < 2) {
        return EPLB_OK;
    }
    int32_t *copied = eplb_alloc(&layer->hooks, (size_t)layer->gpus, sizeof(*copied));
    eplb_fewest_state state;
    eplb_status status = eplb_fewest_state_init(&state, layer, error);
    if (status == EPLB_OK && copied == NULL) {
        status = eplb_out_of_memory(error);
    }
    if (status == EPLB_OK) {
        status = improve(layer, &state, copied, memory_bytes, error);
    }
    eplb_fewest_state_free(&state);
    eplb_free(&layer->hooks, copied);
    return status;
}
