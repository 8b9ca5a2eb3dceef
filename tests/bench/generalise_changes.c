/* SPDX-License-Identifier: MIT */
/* What can be done with scenarios before they are planned for. */
#include "generalise.h"

#include <math.h>
#include <string.h>

#include "bench.h"

eplb_load *generalise_like(const eplb_load *load, int32_t scenarios)
{
    eplb_error error;
    eplb_load *like;
    bench_check(eplb_load_create(&like, NULL, scenarios, eplb_load_layers(load),
                                 eplb_load_experts(load), &error),
                &error);
    return like;
}

double generalise_total(const eplb_load *load, int32_t scenario, int32_t layer)
{
    const double *row = eplb_load_row(load, scenario, layer);
    double total = 0.0;
    for (int32_t e = 0; e < eplb_load_experts(load); e++) {
        total += row[e];
    }
    return total;
}

static void set_row(eplb_load *load, int32_t scenario, int32_t layer, const double *row)
{
    eplb_error error;
    bench_check(eplb_load_set_row(load, scenario, layer, row, &error), &error);
}

static void set_weight(eplb_load *load, int32_t scenario, double weight)
{
    eplb_error error;
    bench_check(eplb_load_set_scenario(load, scenario, NULL, weight, &error), &error);
}

static double *new_row(const eplb_load *load)
{
    return bench_alloc((size_t)eplb_load_experts(load), sizeof(double));
}

/* Each expert's mean share of a layer's tokens, over the scenarios that have some. */
static void mean_shares(const eplb_load *load, int32_t layer, double *mean)
{
    int32_t experts = eplb_load_experts(load);
    int32_t seen = 0;
    memset(mean, 0, (size_t)experts * sizeof(*mean));
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        double total = generalise_total(load, k, layer);
        const double *row = eplb_load_row(load, k, layer);
        seen += total > 0.0;
        for (int32_t e = 0; e < experts && total > 0.0; e++) {
            mean[e] += row[e] / total;
        }
    }
    for (int32_t e = 0; e < experts && seen > 0; e++) {
        mean[e] /= seen;
    }
}

/* The scenarios of a load, with room for more. */
static eplb_load *copy_of(const eplb_load *load, int32_t more)
{
    int32_t scenarios = eplb_load_scenarios(load);
    eplb_load *copy = generalise_like(load, scenarios + more);
    for (int32_t k = 0; k < scenarios; k++) {
        for (int32_t l = 0; l < eplb_load_layers(load); l++) {
            set_row(copy, k, l, eplb_load_row(load, k, l));
        }
    }
    return copy;
}

eplb_load *generalise_as_is(const eplb_load *load, double amount)
{
    (void)amount;
    return copy_of(load, 0);
}

/* For plans of the sum, which go by tokens: now every scenario has as many. */
eplb_load *generalise_alike(const eplb_load *load, double amount)
{
    (void)amount;
    eplb_load *alike = copy_of(load, 0);
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        set_weight(alike, k, 1.0 / generalise_total(load, k, 0));
    }
    return alike;
}

eplb_load *generalise_by_tokens(const eplb_load *load, double power)
{
    eplb_load *weighted = copy_of(load, 0);
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        set_weight(weighted, k, pow(generalise_total(load, k, 0), power));
    }
    return weighted;
}

/* Moves a row toward the mean shares, or away from them when the part is negative. */
static void blend(eplb_load *load, int32_t scenario, int32_t layer, const double *mean, double part)
{
    double *row = new_row(load);
    const double *old = eplb_load_row(load, scenario, layer);
    double total = generalise_total(load, scenario, layer);
    for (int32_t e = 0; e < eplb_load_experts(load); e++) {
        row[e] = fmax(0.0, (1.0 - part) * old[e] + part * total * mean[e]);
    }
    set_row(load, scenario, layer, row);
    free(row);
}

eplb_load *generalise_smooth(const eplb_load *load, double part)
{
    eplb_load *smooth = copy_of(load, 0);
    double *mean = new_row(load);
    for (int32_t l = 0; l < eplb_load_layers(load); l++) {
        mean_shares(load, l, mean);
        for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
            blend(smooth, k, l, mean, part);
        }
    }
    free(mean);
    return smooth;
}

/* Squared distance of a row's shares from the mean. */
static double distance_to(const eplb_load *load, int32_t scenario, int32_t layer,
                          const double *mean)
{
    double total = generalise_total(load, scenario, layer);
    const double *row = eplb_load_row(load, scenario, layer);
    double sum = 0.0;
    for (int32_t e = 0; e < eplb_load_experts(load) && total > 0.0; e++) {
        double difference = row[e] / total - mean[e];
        sum += difference * difference;
    }
    return sum;
}

/* What sampling alone adds to that distance when N tokens fall on experts with these shares. */
static double sampling_noise(const double *mean, int32_t experts, double tokens)
{
    double rest = 1.0;
    for (int32_t e = 0; e < experts; e++) {
        rest -= mean[e] * mean[e];
    }
    return rest / fmax(1.0, tokens);
}

/* Smoothing by as much of a scenario's distance from the mean as sampling explains, times `part`
 * (James and Stein's estimator, with the signal of all scenarios together). */
eplb_load *generalise_shrink(const eplb_load *load, double part)
{
    int32_t scenarios = eplb_load_scenarios(load);
    int32_t experts = eplb_load_experts(load);
    eplb_load *shrunk = copy_of(load, 0);
    double *mean = new_row(load);
    for (int32_t l = 0; l < eplb_load_layers(load); l++) {
        mean_shares(load, l, mean);
        double signal = 0.0;
        for (int32_t k = 0; k < scenarios; k++) {
            signal += distance_to(load, k, l, mean) -
                      sampling_noise(mean, experts, generalise_total(load, k, l));
        }
        signal = fmax(0.0, signal / scenarios);
        for (int32_t k = 0; k < scenarios; k++) {
            double noise = sampling_noise(mean, experts, generalise_total(load, k, l));
            blend(shrunk, k, l, mean, part * noise / (noise + signal));
        }
    }
    free(mean);
    return shrunk;
}

eplb_load *generalise_add_mean(const eplb_load *load, double amount)
{
    (void)amount;
    eplb_load *more = copy_of(load, 1);
    double *mean = new_row(load);
    for (int32_t l = 0; l < eplb_load_layers(load); l++) {
        mean_shares(load, l, mean);
        set_row(more, eplb_load_scenarios(load), l, mean);
    }
    free(mean);
    return more;
}

/* Noise on every expert of some of a load's scenarios. */
static void perturb(eplb_load *load, int32_t first, double sigma, uint64_t seed)
{
    double *row = new_row(load);
    eplb_random random;
    eplb_random_seed(&random, seed);
    for (int32_t k = first; k < eplb_load_scenarios(load); k++) {
        for (int32_t l = 0; l < eplb_load_layers(load); l++) {
            for (int32_t e = 0; e < eplb_load_experts(load); e++) {
                row[e] = eplb_load_row(load, k, l)[e] * exp(sigma * bench_normal(&random));
            }
            set_row(load, k, l, row);
        }
    }
    free(row);
}

/* Too little to mean anything, and enough to lead the search another way. */
eplb_load *generalise_another_search(const eplb_load *load, double seed)
{
    eplb_load *other = copy_of(load, 0);
    perturb(other, 0, 1e-4, (uint64_t)seed);
    return other;
}

/* One more of each scenario, with noise on every expert. */
eplb_load *generalise_add_copies(const eplb_load *load, double sigma)
{
    int32_t scenarios = eplb_load_scenarios(load);
    eplb_load *more = copy_of(load, scenarios);
    for (int32_t k = 0; k < scenarios; k++) {
        for (int32_t l = 0; l < eplb_load_layers(load); l++) {
            set_row(more, scenarios + k, l, eplb_load_row(load, k, l));
        }
    }
    perturb(more, scenarios, sigma, 1);
    return more;
}

/* The mean shares and a random mix of the scenarios' deviations from them: normal with their
 * covariance. */
static void draw_row(const eplb_load *load, int32_t layer, const double *mix, double *row)
{
    double *mean = new_row(load);
    mean_shares(load, layer, mean);
    memcpy(row, mean, (size_t)eplb_load_experts(load) * sizeof(*row));
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        double total = generalise_total(load, k, layer);
        const double *old = eplb_load_row(load, k, layer);
        for (int32_t e = 0; e < eplb_load_experts(load) && total > 0.0; e++) {
            row[e] += mix[k] * (old[e] / total - mean[e]);
        }
    }
    for (int32_t e = 0; e < eplb_load_experts(load); e++) {
        row[e] = fmax(0.0, row[e]);
    }
    free(mean);
}

/* As many more scenarios, drawn with the covariance of those that there are. */
eplb_load *generalise_add_draws(const eplb_load *load, double amount)
{
    (void)amount;
    int32_t scenarios = eplb_load_scenarios(load);
    eplb_load *more = copy_of(load, scenarios);
    double *row = new_row(load);
    double *mix = bench_alloc((size_t)scenarios, sizeof(*mix));
    eplb_random random;
    eplb_random_seed(&random, 1);
    for (int32_t d = 0; d < scenarios; d++) {
        for (int32_t k = 0; k < scenarios; k++) {
            mix[k] = bench_normal(&random) / sqrt(fmax(1.0, scenarios - 1.0));
        }
        for (int32_t l = 0; l < eplb_load_layers(load); l++) {
            draw_row(load, l, mix, row);
            set_row(more, scenarios + d, l, row);
        }
    }
    free(mix);
    free(row);
    return more;
}

/* Sums the scenarios of each group. */
static eplb_load *merge(const eplb_load *load, const int32_t *group, int32_t groups)
{
    eplb_load *merged = generalise_like(load, groups);
    double *row = new_row(load);
    for (int32_t k = 0; k < eplb_load_scenarios(load); k++) {
        for (int32_t l = 0; l < eplb_load_layers(load); l++) {
            for (int32_t e = 0; e < eplb_load_experts(load); e++) {
                row[e] = eplb_load_row(merged, group[k], l)[e] + eplb_load_row(load, k, l)[e];
            }
            set_row(merged, group[k], l, row);
        }
    }
    free(row);
    return merged;
}

/* Sums runs of `length` scenarios: longer slices. */
eplb_load *generalise_merge_runs(const eplb_load *load, double length)
{
    int32_t scenarios = eplb_load_scenarios(load);
    int32_t *group = bench_alloc((size_t)scenarios, sizeof(*group));
    for (int32_t k = 0; k < scenarios; k++) {
        group[k] = k / (int32_t)length;
    }
    eplb_load *merged = merge(load, group, group[scenarios - 1] + 1);
    free(group);
    return merged;
}

/* Squared distance of two scenarios' shares, all layers. */
static double distance(const eplb_load *load, int32_t j, int32_t k)
{
    double sum = 0.0;
    for (int32_t l = 0; l < eplb_load_layers(load); l++) {
        double first = generalise_total(load, j, l);
        double second = generalise_total(load, k, l);
        const double *a = eplb_load_row(load, j, l);
        const double *b = eplb_load_row(load, k, l);
        for (int32_t e = 0; e < eplb_load_experts(load); e++) {
            double difference = a[e] / first - b[e] / second;
            sum += difference * difference;
        }
    }
    return sum;
}

/* The two groups whose sum loses the least (Ward's criterion: scenarios with few tokens are mostly
 * noise, and cost little). */
static void nearest_groups(const eplb_load *load, int32_t *a, int32_t *b)
{
    double least = INFINITY;
    for (int32_t j = 0; j < eplb_load_scenarios(load); j++) {
        for (int32_t k = j + 1; k < eplb_load_scenarios(load); k++) {
            double first = generalise_total(load, j, 0);
            double second = generalise_total(load, k, 0);
            double scale = first * second / (first + second);
            double loss = scale * distance(load, j, k);
            if (loss < least) {
                least = loss;
                *a = j;
                *b = k;
            }
        }
    }
}

/* Sums the two scenarios that are nearest to each other until so many are left. */
eplb_load *generalise_cluster(const eplb_load *load, double groups)
{
    eplb_load *clustered = copy_of(load, 0);
    while (eplb_load_scenarios(clustered) > (int32_t)groups) {
        int32_t scenarios = eplb_load_scenarios(clustered);
        int32_t a = 0;
        int32_t b = 1;
        nearest_groups(clustered, &a, &b);
        int32_t *group = bench_alloc((size_t)scenarios, sizeof(*group));
        for (int32_t k = 0; k < scenarios; k++) {
            group[k] = k == b ? a : k - (k > b);
        }
        eplb_load *fewer = merge(clustered, group, scenarios - 1);
        free(group);
        eplb_load_destroy(&clustered);
        clustered = fewer;
    }
    return clustered;
}
