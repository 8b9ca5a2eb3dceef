/* SPDX-License-Identifier: MIT */
/*
 * Persistent or noise: how much of the imbalance that a layer's steps show is in the expected
 * loads, so that another placement can mend it, and how much comes from few tokens in a step, which
 * only more tokens in a step can mend.
 *
 *     seen       mean over steps of (busiest GPU / mean GPU)
 *     persistent largest expected load of a GPU / mean expected load, >= 1
 *     noise      seen - persistent
 *
 * The expected loads are those of the window's tokens, pooled: a step with many tokens says more
 * than one with few. So noise can be negative where large steps are balanced worse than small ones.
 *
 * The bias. Let m_g be the load of GPU g over the window / the mean GPU, with expectation mu_g. The
 * persistent part is max mu_g, but max m_g is too large on average, since it picks the GPU whose
 * error is luckiest: with G GPUs alike and an error of s each, by about s sqrt(2 ln G). It is
 * corrected by cross-validation, as in the double estimator (van Hasselt, "Double Q-learning",
 * NeurIPS 2010), which needs to know nothing about the errors:
 *
 *   1. The window is kept as subtotals of 32 to 64 runs of consecutive steps (fewer when there are
 *      fewer steps). Runs are dealt out at random into four folds.
 *   2. For each fold v, the GPU a_v that is busiest in the other three is looked up, and its load
 *      m_{a_v}(v) in fold v is taken. Fold v had no say in choosing a_v, hence
 *      E m_{a_v}(v) = E mu_{a_v} <= max mu_g: no luck is left in it.
 *   3. The estimate is the mean over the folds, by tokens, and over 64 ways of dealing (from a
 *      fixed seed: equal input, equal result), cut to the interval from 1 to max m_g.
 *
 * What bias is left. None where one GPU stands out by several s. Where all GPUs are alike only the
 * cut at 1 makes one: some +0.5 s. In between, the GPU chosen is not always the right one: down to
 * -0.7 s with 8 GPUs, -1 s with 32. The root mean square error is 0.8 to 1.5 s throughout; that of
 * max m_g is 1.6 s with 8 GPUs alike, 2.2 s with 32.
 *
 * Correlated tokens. s is measured, not assumed. Tokens of one prompt like the same experts, so
 * loads vary more than those of independent tokens do, and the steps of one batch resemble each
 * other. The variance between runs holds both, as long as runs are independent. So runs are joined,
 * two and two, while that shows a variance of the window's mean that is larger by a quarter or
 * more, but not to fewer than 8. With K runs of n_b assignments, N in all, x_bg the load of GPU g
 * in run b, p_g = sum_b x_bg / N, and q_g the share of folds that chose g:
 *
 *     s_g^2 = K / (K - 1) sum_b (x_bg - n_b p_g)^2 (G / N)^2
 *     standard_error^2 = (K - 1) / (K - 3) (sum_g q_g s_g^2 + (max m_g - persistent)^2)
 *
 * The second term stands for the bias that may be left: the truth tends to lie between the two. The
 * first factor is the price of a variance from few runs (the variance of Student's distribution).
 * In simulations persistent +- 2 standard errors held the truth in 95 windows of 100, at worst in
 * 90, from 4 steps on; but in as few as two of three where the memory of the steps was a quarter of
 * the window. tests/property/split.c has these simulations.
 *
 * How long a window must be. s_g^2 is about dispersion * m_g (G - m_g) / N. To know the persistent
 * part to 0.02 in 95 windows of 100, s must be 0.01:
 *
 *     N >= 10000 * dispersion * m (G - m) assignments.
 *
 * With independent tokens, a top-k of 8 and a persistent part of 1.4, that is 360 steps of 32
 * tokens (3 of 4096) on 8 GPUs and 1700 (13) on 32; eight times as many where tokens come in blocks
 * of eight alike. In a shorter window nothing can do better than that error, which standard_error
 * tells.
 *
 * Limits. Loads that wander (another mix of prompts each hour) count as noise when they even out
 * over the window, though a new placement every hour could follow them: `drift` tells. Replicas are
 * taken to share evenly; an engine that does not has an imbalance of its own.
 *
 * Threads: as for step statistics.
 */
#ifndef EPLB_SPLIT_H
#define EPLB_SPLIT_H

#include <stdint.h>

#include <eplb/status.h>
#include <eplb/step_stats.h>

EPLB_BEGIN_DECLS

/* Without a step everything is 0, and the GPU -1. */
typedef struct eplb_split {
    uint32_t struct_size; /* set by the caller: how much may be written */
    int32_t layer_id;
    int64_t steps; /* with tokens */
    int32_t runs;  /* of steps, after joining */

    /* 1: with fewer than four steps there is nothing to correct from. persistent is then
     * uncorrected, and standard_error 0 means unknown. */
    int32_t too_short;

    double seen;
    double persistent;
    double noise;
    double standard_error; /* of persistent */
    double uncorrected;    /* max m_g */
    int32_t busiest_gpu;   /* where that is; the smaller index of equals */
    int32_t reserved;      /* 0 */

    /* Variance of GPU loads between steps / that of independent tokens with the same expected
     * loads: about 1 when tokens are independent, b when they come in blocks of b alike. The latter
     * is exact for topk 1 (or unknown) and for experts that are all alike; else that of rejective
     * sampling as Hajek approximates it ("Asymptotic theory of rejective sampling", 1964), which
     * was within 6 % for 8 experts of very unequal popularity. 0: unknown (one step, or every GPU
     * gets the same whatever the tokens do). */
    double dispersion;

    /* Variance of the window's mean loads as found from runs / as found from steps. About 1: steps
     * are independent, or too few to tell. n: each resembles some n - 1 others, as in one long
     * decode; loads that wander through the window make it large. 0: unknown. */
    double drift;
} eplb_split;

/*
 * Splits one layer's imbalance. Copies at most struct_size bytes out. Errors: EPLB_ERROR_ARGUMENT,
 * EPLB_ERROR_NOMEM. Cost: some 4000 additions for each GPU. Memory while it runs: some 60 bytes for
 * each GPU, 16 for each expert.
 */
EPLB_API eplb_status eplb_step_stats_split(const eplb_step_stats *stats, int32_t layer,
                                           eplb_split *result, eplb_error *error);

EPLB_END_DECLS

#endif
