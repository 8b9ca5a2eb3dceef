/* SPDX-License-Identifier: MIT */
/* Draws the experts of tokens. */
#ifndef EPLB_STATS_ROUTER_DRAW_H
#define EPLB_STATS_ROUTER_DRAW_H

#include <stdint.h>

#include <eplb/hooks.h>
#include <eplb/random.h>
#include <eplb/status.h>

typedef struct eplb_router_draw {
    int32_t experts;
    int32_t topk;
    eplb_random random;
    uint64_t bits; /* drawn and not yet used */
    int32_t bits_left;
    uint32_t *token_of; /* [experts] the last token that chose the expert */
    uint32_t token;     /* the token at hand, from 1 */

    /* Popularities, as they are and as an alias table (Walker 1977; Vose 1991); NULL: all alike. */
    const double *popularity;
    double *keep;   /* [experts] chance to stay with the cell's own expert */
    int32_t *alias; /* [experts] the cell's other expert */
    int32_t *cells; /* [experts] scratch of making the table */
} eplb_router_draw;

/* `popularity` may be NULL; checked by the caller. */
eplb_status eplb_router_draw_init(eplb_router_draw *draw, const eplb_hooks *hooks, int32_t experts,
                                  int32_t topk, uint64_t seed, const double *popularity,
                                  eplb_error *error);
void eplb_router_draw_free(eplb_router_draw *draw, const eplb_hooks *hooks);

/* Adds the experts of `tokens` tokens to counts [experts]. */
void eplb_router_draw_tokens(eplb_router_draw *draw, int32_t tokens, uint32_t *counts);

#endif
