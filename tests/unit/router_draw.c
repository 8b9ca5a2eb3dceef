/* SPDX-License-Identifier: MIT */
/* Drawing without replacement, against the probabilities of all outcomes. */
#include "support.h"

#include "stats/router_draw.h"

#define TOKENS 200000

/* How often each set of experts (as bits) was drawn, of TOKENS tokens. */
static void draw_sets(int32_t experts, int32_t topk, const double *popularity, double *share)
{
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    eplb_router_draw draw;
    assert_ok(eplb_router_draw_init(&draw, &hooks, experts, topk, 5, popularity, NULL), NULL);
    for (uint32_t set = 0; set < 1u << experts; set++) {
        share[set] = 0.0;
    }
    for (int32_t t = 0; t < TOKENS; t++) {
        uint32_t counts[16] = {0};
        eplb_router_draw_tokens(&draw, 1, counts);
        uint32_t set = 0;
        int32_t drawn = 0;
        for (int32_t e = 0; e < experts; e++) {
            assert_true(counts[e] <= 1); /* an expert once for each token */
            set |= counts[e] << e;
            drawn += (int32_t)counts[e];
        }
        assert_int_equal(drawn, topk);
        share[set] += 1.0 / TOKENS;
    }
    eplb_router_draw_free(&draw, &hooks);
}

static void sets_of_like_experts_are_equally_likely(void **state)
{
    (void)state;
    double share[1 << 6];
    draw_sets(6, 3, NULL, share);
    for (uint32_t set = 0; set < 1u << 6; set++) {
        bool possible = __builtin_popcount(set) == 3;
        assert_close(share[set], possible ? 1.0 / 20.0 : 0.0, 0.003);
    }
}

/* P(i then j) = p_i * p_j / (1 - p_i). */
static void popular_experts_are_drawn_one_after_another(void **state)
{
    (void)state;
    static const double popularity[4] = {1, 2, 3, 4};
    double share[1 << 4];
    draw_sets(4, 2, popularity, share);
    for (int32_t i = 0; i < 4; i++) {
        for (int32_t j = i + 1; j < 4; j++) {
            double p = popularity[i] / 10;
            double q = popularity[j] / 10;
            double expected = p * q / (1 - p) + q * p / (1 - q);
            assert_close(share[1u << i | 1u << j], expected, 0.004);
        }
    }
}

static void expert_that_nobody_wants_is_never_drawn(void **state)
{
    (void)state;
    static const double popularity[5] = {0.1, 0, 0.3, 0, 7};
    double share[1 << 5];
    draw_sets(5, 3, popularity, share);
    assert_close(share[1u << 0 | 1u << 2 | 1u << 4], 1.0, 1e-9);
}

/* Nearly all draws hit the one hot expert: the others must be found all the same. */
static void rest_beside_a_very_hot_expert_is_drawn_by_popularity(void **state)
{
    (void)state;
    static const double popularity[4] = {1e15, 1, 2, 3};
    double share[1 << 4];
    draw_sets(4, 2, popularity, share);
    for (int32_t e = 1; e < 4; e++) {
        assert_close(share[1u | 1u << e], popularity[e] / 6.0, 0.004);
    }
}

/* The marks of tokens wrap around after 2^32 of them. */
static void token_numbers_may_wrap_around(void **state)
{
    (void)state;
    eplb_hooks hooks;
    eplb_hooks_init(&hooks);
    eplb_router_draw draw;
    assert_ok(eplb_router_draw_init(&draw, &hooks, 3, 2, 1, NULL, NULL), NULL);
    draw.token = UINT32_MAX - 1;
    uint32_t counts[3] = {0};
    eplb_router_draw_tokens(&draw, 5, counts);
    assert_int_equal(counts[0] + counts[1] + counts[2], 10);
    eplb_router_draw_free(&draw, &hooks);
}

TEST_MAIN(cmocka_unit_test(sets_of_like_experts_are_equally_likely),
          cmocka_unit_test(popular_experts_are_drawn_one_after_another),
          cmocka_unit_test(expert_that_nobody_wants_is_never_drawn),
          cmocka_unit_test(rest_beside_a_very_hot_expert_is_drawn_by_popularity),
          cmocka_unit_test(token_numbers_may_wrap_around))
