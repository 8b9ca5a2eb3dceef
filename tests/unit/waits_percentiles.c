/* SPDX-License-Identifier: MIT */
/* Percentiles from the histogram beside those of the sorted samples, on seeded random waits. */
#include "waits.h"

#include <eplb/random.h>

enum { LAYERS = 3, RANKS = 4, MOST = 700 };

typedef struct samples {
    double values[LAYERS][RANKS][MOST];
    int counts[LAYERS][RANKS];
} samples;

/* Over ten powers of ten, so that each kind of bin is met; an eighth are zeros or whole numbers. */
static double draw(eplb_random *random)
{
    uint64_t kind = eplb_random_below(random, 16);
    if (kind < 2) {
        return kind == 0 ? 0.0 : (double)eplb_random_below(random, 300);
    }
    double value = eplb_random_unit(random);
    for (uint64_t tens = eplb_random_below(random, 11); tens > 0; tens--) {
        value *= 10.0;
    }
    return value;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct exact {
    double sorted[LAYERS * RANKS * MOST];
    int count;
    double sum;
} exact;

static void take(exact *all, const samples *from, int layer, int rank)
{
    for (int i = 0; i < from->counts[layer][rank]; i++) {
        all->sorted[all->count++] = from->values[layer][rank][i];
        all->sum += from->values[layer][rank][i];
    }
}

static void assert_times(exact *all, int64_t count, double p50, double p99, double mean,
                         double worst)
{
    qsort(all->sorted, (size_t)all->count, sizeof(double), by_value);
    double exact50 = all->sorted[(all->count * 50 + 99) / 100 - 1];
    double exact99 = all->sorted[(all->count * 99 + 99) / 100 - 1];
    assert_int_equal(count, all->count);
    assert_close(p50, exact50, tolerance_of(exact50));
    assert_close(p99, exact99, tolerance_of(exact99));
    assert_close(mean, all->sum / all->count, 1e-12 * all->sum / all->count);
    assert_true(worst == all->sorted[all->count - 1]);
}

static void compare_all(const eplb_waits *waits, const samples *from, exact *all)
{
    for (int l = 0; l < LAYERS; l++) {
        for (int r = 0; r < RANKS; r++) {
            *all = (exact){0};
            take(all, from, l, r);
            eplb_wait_times t = times_of(waits, l, r);
            assert_times(all, t.samples, t.p50, t.p99, t.mean, t.worst);
        }
        *all = (exact){0};
        for (int r = 0; r < RANKS; r++) {
            take(all, from, l, r);
        }
        eplb_layer_waits layer = layer_of(waits, l);
        assert_times(all, layer.samples, layer.p50, layer.p99, layer.mean, layer.worst);
    }
    for (int r = 0; r < RANKS; r++) {
        *all = (exact){0};
        for (int l = 0; l < LAYERS; l++) {
            take(all, from, l, r);
        }
        eplb_rank_waits rank = rank_of(waits, r);
        assert_times(all, rank.samples, rank.p50, rank.p99, rank.mean, rank.worst);
    }
    *all = (exact){0};
    for (int i = 0; i < LAYERS * RANKS; i++) {
        take(all, from, i / RANKS, i % RANKS);
    }
    eplb_waits_info info = info_of(waits);
    assert_times(all, info.samples, info.p50, info.p99, info.mean, info.worst);
}

static void percentiles_are_those_of_the_sorted_samples(void **state)
{
    (void)state;
    samples *kept = malloc(sizeof(*kept));
    exact *all = malloc(sizeof(*all));
    assert_true(kept != NULL && all != NULL);
    for (uint64_t seed = 1; seed <= 40; seed++) {
        eplb_random random;
        eplb_random_seed(&random, seed);
        eplb_waits *waits = waits_of(LAYERS, RANKS);
        for (int i = 0; i < LAYERS * RANKS; i++) {
            int count = 1 + (int)eplb_random_below(&random, seed % 4 == 0 ? 5 : MOST);
            kept->counts[i / RANKS][i % RANKS] = count;
            for (int s = 0; s < count; s++) {
                double wait = draw(&random);
                kept->values[i / RANKS][i % RANKS][s] = wait;
                add(waits, i / RANKS, i % RANKS, wait);
            }
        }
        compare_all(waits, kept, all);
        eplb_waits_destroy(&waits);
    }
    free(kept);
    free(all);
}

/* One sample far below another one: the median is the middle of its bin, not the largest wait. */
static void each_value_stays_within_the_error_of_its_bin(void **state)
{
    (void)state;
    for (double value = 1.0 / 4096; value < EPLB_MAX_WAIT_US / 2; value *= 1.00371) {
        eplb_waits *waits = waits_of(1, 1);
        add(waits, 0, 0, value);
        add(waits, 0, 0, EPLB_MAX_WAIT_US);
        assert_close(times_of(waits, 0, 0).p50, value, tolerance_of(value));
        eplb_waits_destroy(&waits);
    }
}

TEST_MAIN(cmocka_unit_test(percentiles_are_those_of_the_sorted_samples),
          cmocka_unit_test(each_value_stays_within_the_error_of_its_bin))
