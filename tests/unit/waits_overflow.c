/* SPDX-License-Identifier: MIT */
/* As many samples as a rank can have in a layer, and one more. */
#include "stats/waits.h"

#include "waits.h"

/* Waits of one rank with so many samples of 2 us. */
static eplb_waits *full(uint32_t samples)
{
    eplb_waits *waits = waits_of(1, 1);
    add(waits, 0, 0, 2.0);
    eplb_wait_cell *cell = *eplb_waits_at(waits, 0, 0);
    for (int b = 0; b < EPLB_WAIT_BINS; b++) {
        cell->histogram[b] = cell->histogram[b] > 0 ? samples : 0;
    }
    cell->samples = samples;
    cell->sum = 2.0 * samples;
    return waits;
}

static void the_sample_after_the_last_is_refused(void **state)
{
    (void)state;
    eplb_waits *waits = full(UINT32_MAX - 1);
    add(waits, 0, 0, 2.0);
    eplb_error error;
    assert_status(eplb_waits_add(waits, 0, 0, 2.0, &error), EPLB_ERROR_OVERFLOW, &error);
    assert_contains(error.message, "layer 0: rank 0: more than 4294967295 samples");
    eplb_wait_times times = times_of(waits, 0, 0);
    assert_int_equal(times.samples, UINT32_MAX);
    assert_true(times.mean == 2.0 && times.p50 == 2.0 && times.p99 == 2.0);
    eplb_waits_destroy(&waits);
}

static void a_merge_of_too_many_samples_is_refused(void **state)
{
    (void)state;
    eplb_waits *into = full(UINT32_MAX - 10);
    eplb_waits *from = full(11);
    eplb_error error;
    assert_status(eplb_waits_merge(into, from, &error), EPLB_ERROR_OVERFLOW, &error);
    assert_contains(error.message, "layer 0: rank 0: 4294967285 and 11 samples");
    assert_int_equal(times_of(into, 0, 0).samples, UINT32_MAX - 10);
    eplb_waits_destroy(&from);
    from = full(10);
    assert_ok(eplb_waits_merge(into, from, &error), &error);
    assert_int_equal(times_of(into, 0, 0).samples, UINT32_MAX);
    eplb_waits_destroy(&from);
    eplb_waits_destroy(&into);
}

static void a_cell_has_the_size_that_the_header_promises(void **state)
{
    (void)state;
    assert_int_equal(sizeof(eplb_wait_cell), 4888);
    assert_int_equal(EPLB_WAIT_BINS, 1216);
}

TEST_MAIN(cmocka_unit_test(the_sample_after_the_last_is_refused),
          cmocka_unit_test(a_merge_of_too_many_samples_is_refused),
          cmocka_unit_test(a_cell_has_the_size_that_the_header_promises))
