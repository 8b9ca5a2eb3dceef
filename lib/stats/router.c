/* SPDX-License-Identifier: MIT */
#include <eplb/router.h>

#include <eplb/load.h>

#include "base/memory.h"
#include "base/range.h"
#include "model/row.h"
#include "stats/router_draw.h"

#define MOST_TOKENS (1 << 24)

void eplb_router_options_init(eplb_router_options *options)
{
    if (options == NULL) {
        return;
    }
    *options = (eplb_router_options){.struct_size = sizeof(*options),
                                     .experts = 256,
                                     .topk = 8,
                                     .ranks = 8,
                                     .tile = 64,
                                     .trials = 10000,
                                     .seed = 1};
}

static eplb_status check_popularity(const eplb_router_options *options, eplb_error *error)
{
    if (options->popularity == NULL) {
        return EPLB_OK;
    }
    eplb_status status =
        eplb_row_check("router: popularity", -1, options->popularity, options->experts, error);
    if (status != EPLB_OK) {
        return status;
    }
    int32_t possible = 0;
    for (int32_t e = 0; e < options->experts; e++) {
        possible += options->popularity[e] > 0.0;
    }
    if (possible < options->topk) {
        return eplb_error_set(
            error, EPLB_ERROR_DATA,
            "router: %d experts have a popularity above 0, but each token goes to "
            "%d",
            possible, options->topk);
    }
    return EPLB_OK;
}

static eplb_status check(const eplb_router_options *options, int32_t batch, eplb_error *error)
{
    const struct {
        const char *name;
        int32_t value;
        int32_t high;
    } ranges[] = {
        {"batch", batch, MOST_TOKENS},
        {"number of experts", options->experts, EPLB_MAX_EXPERTS},
        {"top-k", options->topk, options->experts},
        {"number of ranks", options->ranks, options->experts},
        {"tile", options->tile, MOST_TOKENS},
        {"number of trials", options->trials, MOST_TOKENS},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        eplb_status status =
            eplb_check_range("router", ranges[i].name, ranges[i].value, 1, ranges[i].high, error);
        if (status != EPLB_OK) {
            return status;
        }
    }
    if (options->experts % options->ranks != 0) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "router: %d ranks do not share %d experts evenly", options->ranks,
                              options->experts);
    }
    return check_popularity(options, error);
}

/* What the trials add up to. */
typedef struct sums {
    double busiest;     /* tokens of the busiest rank */
    double most_padded; /* rows of the rank with most padded rows */
    double padded;      /* rows of all ranks */
    double touched;     /* experts */
} sums;

static double padded_rows(uint32_t tokens, uint32_t tile)
{
    return (double)(((uint64_t)tokens + tile - 1) / tile * tile);
}

/* Adds one trial's counts [experts] up; returns the tokens of the busiest rank. */
static uint32_t add_trial(sums *s, const eplb_router_options *options, const uint32_t *counts)
{
    int32_t experts_per_rank = options->experts / options->ranks;
    uint32_t busiest = 0;
    double most_padded = 0.0;
    for (int32_t rank = 0; rank < options->ranks; rank++) {
        const uint32_t *own = counts + rank * experts_per_rank;
        uint32_t tokens = 0;
        double padded = 0.0;
        for (int32_t e = 0; e < experts_per_rank; e++) {
            tokens += own[e];
            padded += padded_rows(own[e], (uint32_t)options->tile);
            s->touched += own[e] > 0 ? 1.0 : 0.0;
        }
        busiest = tokens > busiest ? tokens : busiest;
        most_padded = padded > most_padded ? padded : most_padded;
        s->padded += padded;
    }
    s->busiest += (double)busiest;
    s->most_padded += most_padded;
    return busiest;
}

/* The least value that at least 99 % of the values do not exceed, by bisection. */
static uint32_t percentile_99(const uint32_t *values, int32_t count)
{
    int64_t wanted = ((int64_t)count * 99 + 99) / 100;
    uint32_t low = 0;
    uint32_t high = UINT32_MAX;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int64_t within = 0;
        for (int32_t i = 0; i < count; i++) {
            within += values[i] <= middle;
        }
        if (within >= wanted) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static double power(double base, int32_t exponent)
{
    double result = 1.0;
    for (; exponent > 0; exponent /= 2, base *= base) {
        result *= exponent % 2 == 1 ? base : 1.0;
    }
    return result;
}

static eplb_router_result conclude(const sums *s, const eplb_router_options *options, int32_t batch,
                                   const uint32_t *busiest)
{
    double trials = options->trials;
    double useful = (double)batch * options->topk; /* rows of a trial */
    double mean = useful / options->ranks;         /* of a rank */
    double alike = 1.0 - power(1.0 - (double)options->topk / options->experts, batch);
    double measured = s->touched / trials / options->experts;
    eplb_router_result result = {
        .struct_size = sizeof(result),
        .batch = batch,
        .imbalance_mean = s->busiest / trials / mean,
        .imbalance_p99 = percentile_99(busiest, options->trials) / mean,
        .padded_worst_rank = s->most_padded / trials / mean,
        .padded_ratio = s->padded / trials / useful,
        .experts_touched = options->popularity == NULL ? alike : measured,
        .experts_touched_measured = measured,
        .tokens_to_fill_tiles = (double)options->tile * options->experts / options->topk,
    };
    result.weight_bytes_share_per_token = result.experts_touched / batch;
    return result;
}

static eplb_status simulate(eplb_router_result *result, const eplb_hooks *hooks,
                            const eplb_router_options *options, int32_t batch, eplb_error *error)
{
    eplb_router_draw draw;
    eplb_status status = eplb_router_draw_init(&draw, hooks, options->experts, options->topk,
                                               options->seed, options->popularity, error);
    if (status != EPLB_OK) {
        return status;
    }
    size_t experts = (size_t)options->experts;
    uint32_t *counts = eplb_alloc(hooks, experts, sizeof(*counts));
    uint32_t *busiest = eplb_alloc(hooks, (size_t)options->trials, sizeof(*busiest));
    if (counts != NULL && busiest != NULL) {
        sums s = {0};
        for (int32_t trial = 0; trial < options->trials; trial++) {
            memset(counts, 0, experts * sizeof(*counts));
            eplb_router_draw_tokens(&draw, batch, counts);
            busiest[trial] = add_trial(&s, options, counts);
        }
        *result = conclude(&s, options, batch, busiest);
    } else {
        status = eplb_out_of_memory(error);
    }
    eplb_free(hooks, counts);
    eplb_free(hooks, busiest);
    eplb_router_draw_free(&draw, hooks);
    return status;
}

eplb_status eplb_router_simulate(eplb_router_result *result, const eplb_hooks *hooks,
                                 const eplb_router_options *options, int32_t batch,
                                 eplb_error *error)
{
    if (result == NULL || result->struct_size < sizeof(result->struct_size)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT, "router: no result with a struct_size");
    }
    eplb_router_options complete;
    eplb_router_options_init(&complete);
    if (options != NULL && !eplb_struct_in(&complete, sizeof(complete), options)) {
        return eplb_error_set(error, EPLB_ERROR_ARGUMENT,
                              "router: options without struct_size: see eplb_router_options_init");
    }
    eplb_status status = check(&complete, batch, error);
    if (status != EPLB_OK) {
        return status;
    }
    eplb_hooks resolved = eplb_hooks_resolve(hooks);
    eplb_router_result simulated;
    status = simulate(&simulated, &resolved, &complete, batch, error);
    if (status == EPLB_OK) {
        eplb_struct_out(result, &simulated, sizeof(simulated));
    }
    return status;
}
