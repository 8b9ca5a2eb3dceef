/* SPDX-License-Identifier: MIT */
#include "planner/trail.h"

#include <string.h>

#include "base/memory.h"

/* Free moves make more states of a level, of which the best are looked at: twice as many as the
 * level began with, and so many more. */
#define MORE_STATES 2

/* The charge of a GPU rises as so many times its excess. */
#define CHARGE_SLOPE 16.0f

eplb_status eplb_trail_init(eplb_trail *trail, const eplb_hooks *hooks, eplb_layer *layer,
                            int32_t scenarios, int32_t width, eplb_error *error)
{
    const eplb_shape *shape = layer->shape;
    *trail = (eplb_trail){
        .shape = shape, .layer = layer, .width = width, .pool_width = 2 * width + MORE_STATES};
    size_t groups = ((size_t)scenarios + EPLB_LANES - 1) / EPLB_LANES;
    size_t experts = (size_t)shape->experts;
    size_t gpus = (size_t)shape->gpus;
    size_t slots = (size_t)shape->slots;
    size_t slot_groups = (slots + EPLB_LANES - 1) / EPLB_LANES;
    size_t states = EPLB_TRAIL_LEVELS * (size_t)trail->pool_width;
    const eplb_array arrays[] = {
        EPLB_ARRAY(trail->load, experts * groups),
        EPLB_ARRAY(trail->weight, groups),
        EPLB_ARRAY(trail->home, gpus * (size_t)layer->words),
        EPLB_ARRAY(trail->share, experts * groups),
        EPLB_ARRAY(trail->height, gpus * groups),
        EPLB_ARRAY(trail->excess, gpus),
        EPLB_ARRAY(trail->incoming, gpus),
        EPLB_ARRAY(trail->slot_share, (size_t)scenarios * slot_groups),
        EPLB_ARRAY(trail->slot_height, (size_t)scenarios * slot_groups),
        EPLB_ARRAY(trail->slot_excess, slot_groups),
        EPLB_ARRAY(trail->relief, experts),
        EPLB_ARRAY(trail->pull, experts),
        EPLB_ARRAY(trail->push, experts),
        EPLB_ARRAY(trail->donor, slots),
        EPLB_ARRAY(trail->donor_excess, slots),
        EPLB_ARRAY(trail->none, groups),
        EPLB_ARRAY(trail->gain, groups),
        EPLB_ARRAY(trail->loss, groups),
        EPLB_ARRAY(trail->both, groups),
        EPLB_ARRAY(trail->pool, states * slots),
        EPLB_ARRAY(trail->pool_copies, states),
        EPLB_ARRAY(trail->pool_key, states),
        EPLB_ARRAY(trail->queue[0].moves, (size_t)width),
        EPLB_ARRAY(trail->queue[1].moves, (size_t)width),
        EPLB_ARRAY(trail->queue[2].moves, (size_t)width),
    };
    trail->slot_groups = (int32_t)slot_groups;
    return eplb_alloc_arrays(hooks, arrays, sizeof(arrays) / sizeof(arrays[0]), error);
}

void eplb_trail_free(eplb_trail *trail, const eplb_hooks *hooks)
{
    void *arrays[] = {
        trail->load,          trail->weight,      trail->home,           trail->share,
        trail->height,        trail->excess,      trail->incoming,       trail->slot_share,
        trail->slot_height,   trail->slot_excess, trail->relief,         trail->pull,
        trail->push,          trail->donor,       trail->donor_excess,   trail->none,
        trail->gain,          trail->loss,        trail->both,           trail->pool,
        trail->pool_copies,   trail->pool_key,    trail->queue[0].moves, trail->queue[1].moves,
        trail->queue[2].moves};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        eplb_free(hooks, arrays[i]);
    }
    *trail = (eplb_trail){.shape = NULL};
}

void eplb_trail_begin(eplb_trail *trail, int32_t scenarios, const double *loads,
                      const double *weights)
{
    int32_t experts = trail->shape->experts;
    trail->scenarios = scenarios;
    trail->groups = (scenarios + EPLB_LANES - 1) / EPLB_LANES;
    size_t lanes = EPLB_LANES * (size_t)trail->groups;
    float *load = (float *)trail->load;
    float *weight = (float *)trail->weight;
    memset(load, 0, (size_t)experts * lanes * sizeof(*load));
    memset(weight, 0, lanes * sizeof(*weight));
    for (int32_t k = 0; k < scenarios; k++) {
        weight[k] = (float)weights[k];
        for (int32_t e = 0; e < experts; e++) {
            load[(size_t)e * lanes + (size_t)k] =
                (float)loads[(size_t)k * (size_t)experts + (size_t)e];
        }
    }
    eplb_trail_clear_home(trail);
    trail->moves = 0;
    trail->most_incoming = -1;
}

void eplb_trail_clear_home(eplb_trail *trail)
{
    memset(trail->home, 0,
           (size_t)trail->shape->gpus * (size_t)trail->layer->words * sizeof(*trail->home));
}

int32_t eplb_trail_copies(const eplb_trail *trail, const int32_t *slots)
{
    int32_t copies = 0;
    for (int32_t s = 0; s < trail->shape->slots; s++) {
        copies += !eplb_trail_is_home(trail, trail->shape->slot_gpu[s], slots[s]);
    }
    return copies;
}

static int32_t *slots_of(const eplb_trail *trail, int32_t state)
{
    return trail->pool + (size_t)state * (size_t)trail->shape->slots;
}

/* How many moves of a level are worth keeping: at the level at hand, as many as will be looked at.
 */
static int32_t room_of(const eplb_trail *trail, int32_t ahead)
{
    int32_t left = trail->pool_width - trail->states;
    return ahead == 0 && left < trail->width ? left : trail->width;
}

/* The worst excess that a full queue keeps; anything goes into others. */
static float limit_of(const eplb_trail *trail, int32_t ahead)
{
    const eplb_trail_queue *queue = &trail->queue[ahead];
    int32_t room = room_of(trail, ahead);
    if (room == 0) {
        return -1.0f;
    }
    return queue->count < room ? 3.0e38f : queue->moves[room - 1].excess;
}

static void find_limits(eplb_trail *trail)
{
    for (int32_t i = 0; i < EPLB_TRAIL_LEVELS; i++) {
        trail->limit[i] = limit_of(trail, i);
    }
}

/* The first of equally good ones is before the later. */
static void insert(eplb_trail *trail, int32_t ahead, const eplb_trail_move *move)
{
    eplb_trail_queue *queue = &trail->queue[ahead];
    int32_t room = room_of(trail, ahead);
    if (!(move->excess < trail->limit[ahead])) {
        return;
    }
    for (int32_t i = 0; i < queue->count; i++) {
        if (queue->moves[i].key == move->key) {
            return;
        }
    }
    trail->kept++;
    queue->count = queue->count < room ? queue->count + 1 : room;
    int32_t i = queue->count - 1;
    for (; i > 0 && queue->moves[i - 1].excess > move->excess; i--) {
        queue->moves[i] = queue->moves[i - 1];
    }
    queue->moves[i] = *move;
    trail->limit[ahead] = limit_of(trail, ahead);
}

/* Whether the level at hand has the state. */
static bool is_known(const eplb_trail *trail, uint64_t key)
{
    for (int32_t i = 0; i < trail->states; i++) {
        if (trail->pool_key[trail->base + i] == key) {
            return true;
        }
    }
    return false;
}

void eplb_trail_offer(eplb_trail *trail, const eplb_trail_move *move, int32_t copies)
{
    if (copies > trail->level) {
        insert(trail, copies - trail->level, move);
    } else if (!is_known(trail, move->key)) {
        insert(trail, 0, move);
    }
}

/* Makes the state that a move leads to; its place in the pool is `state`. */
static void make_state(eplb_trail *trail, const eplb_trail_move *move, int32_t state)
{
    int32_t *slots = slots_of(trail, state);
    memcpy(slots, slots_of(trail, move->parent), (size_t)trail->shape->slots * sizeof(*slots));
    if (move->other >= 0) {
        int32_t expert = slots[move->slot];
        slots[move->slot] = slots[move->other];
        slots[move->other] = expert;
    } else {
        slots[move->slot] = move->expert;
    }
    trail->pool_copies[state] = eplb_trail_copies(trail, slots);
    trail->pool_key[state] = move->key;
}

/* The placement in doubles; then its shares in lanes. */
static void index_state(eplb_trail *trail, int32_t state)
{
    eplb_layer *layer = trail->layer;
    memcpy(layer->slot_expert, slots_of(trail, state),
           (size_t)trail->shape->slots * sizeof(*layer->slot_expert));
    eplb_layer_index(layer);
    trail->state = state;
    trail->copies = trail->pool_copies[state];
    trail->key = trail->pool_key[state];
    memset(trail->incoming, 0, (size_t)trail->shape->gpus * sizeof(*trail->incoming));
    for (int32_t s = 0; s < trail->shape->slots; s++) {
        int32_t gpu = trail->shape->slot_gpu[s];
        trail->incoming[gpu] += !eplb_trail_is_home(trail, gpu, layer->slot_expert[s]);
    }
    size_t groups = (size_t)trail->groups;
    for (int32_t e = 0; e < trail->shape->experts; e++) {
        eplb_lanes part = eplb_lanes_of(1.0f / (float)layer->count[e]);
        for (size_t i = 0; i < groups; i++) {
            trail->share[(size_t)e * groups + i] = trail->load[(size_t)e * groups + i] * part;
        }
    }
}

/* What one state of a level is worth, and which is the best. */
typedef struct level_best {
    int32_t state;
    double value;
} level_best;

static void look_at(eplb_trail *trail, int32_t state, const eplb_trail_visitor *visitor,
                    level_best *best)
{
    index_state(trail, state);
    double value = visitor->value(visitor->context);
    if (best->state < 0 || value < best->value) {
        best->state = state;
        best->value = value;
    }
    find_limits(trail);
    eplb_trail_expand(trail);
}

static eplb_trail_move take_first(eplb_trail_queue *queue)
{
    eplb_trail_move first = queue->moves[0];
    queue->count--;
    memmove(queue->moves, queue->moves + 1, (size_t)queue->count * sizeof(*queue->moves));
    return first;
}

/* Looks at the best states of the level, those that free moves lead to among them. One that is
 * good enough ends it. */
static void fill_level(eplb_trail *trail, const eplb_trail_visitor *visitor, level_best *best)
{
    trail->states = 0;
    while (trail->queue[0].count > 0 && trail->states < trail->pool_width &&
           (best->state < 0 || best->value > trail->threshold)) {
        eplb_trail_move move = take_first(&trail->queue[0]);
        int32_t state = trail->base + trail->states++;
        make_state(trail, &move, state);
        look_at(trail, state, visitor, best);
    }
}

static void next_level(eplb_trail *trail)
{
    eplb_trail_queue first = trail->queue[0];
    for (int i = 1; i < EPLB_TRAIL_LEVELS; i++) {
        trail->queue[i - 1] = trail->queue[i];
    }
    first.count = 0;
    trail->queue[EPLB_TRAIL_LEVELS - 1] = first;
    trail->level++;
}

/* The first state, as if a move had led to it. */
static void begin(eplb_trail *trail, const int32_t *start)
{
    int32_t first = (EPLB_TRAIL_LEVELS - 1) * trail->pool_width; /* where level 0 does not write */
    memcpy(slots_of(trail, first), start, (size_t)trail->shape->slots * sizeof(*start));
    uint64_t key = 0;
    for (int32_t s = 0; s < trail->shape->slots; s++) {
        key ^= eplb_trail_key(trail->shape->slot_gpu[s], start[s]);
    }
    trail->level = 0;
    for (int i = 0; i < EPLB_TRAIL_LEVELS; i++) {
        trail->queue[i].count = 0;
    }
    trail->queue[0].count = 1;
    trail->queue[0].moves[0] =
        (eplb_trail_move){.parent = first, .slot = 0, .other = -1, .expert = start[0], .key = key};
}

void eplb_trail_run(eplb_trail *trail, const int32_t *start, const eplb_trail_measure *measure,
                    const eplb_trail_visitor *visitor)
{
    const eplb_shape *shape = trail->shape;
    trail->threshold = measure->threshold;
    trail->steepness = measure->steepness;
    trail->charge = measure->charge * (float)shape->gpus / (float)shape->slots;
    trail->charge_slope = CHARGE_SLOPE;
    begin(trail, start);
    trail->level = eplb_trail_copies(trail, start);
    for (int32_t number = 0;; number++) {
        trail->base = number % EPLB_TRAIL_LEVELS * trail->pool_width;
        level_best best = {.state = -1};
        fill_level(trail, visitor, &best);
        bool goes_on = best.state < 0 || visitor->level(visitor->level_context, trail->level,
                                                        trail->pool_copies[best.state], best.value,
                                                        slots_of(trail, best.state));
        if (!goes_on || (trail->queue[1].count == 0 && trail->queue[2].count == 0)) {
            return;
        }
        next_level(trail);
    }
}
