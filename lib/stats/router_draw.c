/* SPDX-License-Identifier: MIT */
#include "stats/router_draw.h"

#include "base/memory.h"
#include "base/random_inline.h"

/* So many draws in a row of experts that the token has already: few others are likely, and looking
 * at each is faster than going on. */
#define PATIENCE 64

/* Fills the alias table: cells of equal width, each shared by at most two experts. */
static void make_alias_table(eplb_router_draw *draw)
{
    int32_t experts = draw->experts;
    double total = 0.0;
    for (int32_t e = 0; e < experts; e++) {
        total += draw->popularity[e];
    }
    /* cells: experts with less than a cell's width from the left, with more from the right. */
    int32_t small = 0;
    int32_t large = experts;
    for (int32_t e = 0; e < experts; e++) {
        draw->keep[e] = draw->popularity[e] / total * (double)experts;
        draw->alias[e] = e;
        draw->cells[draw->keep[e] < 1.0 ? small++ : --large] = e;
    }
    while (small > 0 && large < experts) {
        int32_t few = draw->cells[--small];
        int32_t many = draw->cells[large];
        draw->alias[few] = many;
        draw->keep[many] -= 1.0 - draw->keep[few];
        if (draw->keep[many] < 1.0) {
            draw->cells[small++] = many;
            large++;
        }
    }
    /* What is left is a full cell but for rounding; an expert that nobody wants keeps none. */
    for (; large < experts; large++) {
        draw->keep[draw->cells[large]] = 1.0;
    }
    for (int32_t i = 0; i < small; i++) {
        int32_t e = draw->cells[i];
        draw->keep[e] = draw->popularity[e] > 0.0 ? 1.0 : draw->keep[e];
    }
}

eplb_status eplb_router_draw_init(eplb_router_draw *draw, const eplb_hooks *hooks, int32_t experts,
                                  int32_t topk, uint64_t seed, const double *popularity,
                                  eplb_error *error)
{
    memset(draw, 0, sizeof(*draw));
    draw->experts = experts;
    draw->topk = topk;
    draw->popularity = popularity;
    eplb_random_seed(&draw->random, seed);
    size_t count = (size_t)experts;
    draw->token_of = eplb_alloc_zeroed(hooks, count, sizeof(*draw->token_of));
    bool complete = draw->token_of != NULL;
    if (complete && popularity != NULL) {
        draw->keep = eplb_alloc(hooks, count, sizeof(*draw->keep));
        draw->alias = eplb_alloc(hooks, count, sizeof(*draw->alias));
        draw->cells = eplb_alloc(hooks, count, sizeof(*draw->cells));
        complete = draw->keep != NULL && draw->alias != NULL && draw->cells != NULL;
    }
    if (!complete) {
        eplb_router_draw_free(draw, hooks);
        return eplb_out_of_memory(error);
    }
    if (popularity != NULL) {
        make_alias_table(draw);
    }
    return EPLB_OK;
}

void eplb_router_draw_free(eplb_router_draw *draw, const eplb_hooks *hooks)
{
    eplb_free(hooks, draw->token_of);
    eplb_free(hooks, draw->keep);
    eplb_free(hooks, draw->alias);
    eplb_free(hooks, draw->cells);
    memset(draw, 0, sizeof(*draw));
}

static inline bool is_taken(const eplb_router_draw *draw, int32_t expert)
{
    return draw->token_of[expert] == draw->token;
}

static inline void take(eplb_router_draw *draw, int32_t expert, uint32_t *counts)
{
    draw->token_of[expert] = draw->token;
    counts[expert]++;
}

/*
 * All experts alike: 16 bits make a number below `experts` (at most 2^16); those of its products
 * that would make some numbers more likely are drawn again (Lemire, "Fast random integer generation
 * in an interval", 2019). The state is in local variables: writes to counts could change it
 * otherwise, for all that the compiler knows.
 */
static void draw_alike(eplb_router_draw *draw, uint32_t *counts)
{
    const uint32_t experts = (uint32_t)draw->experts;
    const uint32_t unfair = 65536u % experts;
    const uint32_t token = draw->token;
    uint32_t *token_of = draw->token_of;
    uint64_t bits = draw->bits;
    int32_t bits_left = draw->bits_left;
    for (int32_t missing = draw->topk; missing > 0;) {
        if (bits_left == 0) {
            bits = eplb_random_step(&draw->random);
            bits_left = 64;
        }
        uint32_t product = (uint32_t)(bits & 0xffffu) * experts;
        uint32_t expert = product >> 16;
        bits >>= 16;
        bits_left -= 16;
        if ((product & 0xffffu) >= unfair && token_of[expert] != token) {
            token_of[expert] = token;
            counts[expert]++;
            missing--;
        }
    }
    draw->bits = bits;
    draw->bits_left = bits_left;
}

static double unit(eplb_router_draw *draw)
{
    return (double)(eplb_random_step(&draw->random) >> 11) * 0x1p-53;
}

static int32_t draw_from_table(eplb_router_draw *draw)
{
    double place = unit(draw) * (double)draw->experts;
    int32_t cell = (int32_t)place;
    return place - (double)cell < draw->keep[cell] ? cell : draw->alias[cell];
}

/* One of the experts not yet taken, by popularity. */
static int32_t draw_from_rest(eplb_router_draw *draw)
{
    double rest = 0.0;
    int32_t last = -1;
    for (int32_t e = 0; e < draw->experts; e++) {
        rest += is_taken(draw, e) ? 0.0 : draw->popularity[e];
    }
    double place = unit(draw) * rest;
    for (int32_t e = 0; e < draw->experts && (last < 0 || place >= 0.0); e++) {
        if (!is_taken(draw, e) && draw->popularity[e] > 0.0) {
            last = e;
            place -= draw->popularity[e];
        }
    }
    return last;
}

static void draw_by_popularity(eplb_router_draw *draw, uint32_t *counts)
{
    for (int32_t i = 0; i < draw->topk; i++) {
        int32_t expert = draw_from_table(draw);
        for (int32_t tries = 1; is_taken(draw, expert) && tries < PATIENCE; tries++) {
            expert = draw_from_table(draw);
        }
        if (is_taken(draw, expert)) {
            expert = draw_from_rest(draw);
        }
        take(draw, expert, counts);
    }
}

void eplb_router_draw_tokens(eplb_router_draw *draw, int32_t tokens, uint32_t *counts)
{
    for (int32_t t = 0; t < tokens; t++) {
        if (++draw->token == 0) { /* every mark of 2^32 tokens ago would look new */
            memset(draw->token_of, 0, (size_t)draw->experts * sizeof(*draw->token_of));
            draw->token = 1;
        }
        if (draw->popularity == NULL) {
            draw_alike(draw, counts);
        } else {
            draw_by_popularity(draw, counts);
        }
    }
}
