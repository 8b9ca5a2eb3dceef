/* SPDX-License-Identifier: MIT */
/*
 * A window's time. Readers see the steps, the buckets and what they hold as of one moment: they
 * read again when `version` was odd or changed meanwhile. Each value that changes is stored with
 * release order after `version` was made odd, so a reader that sees it sees that too; fences would
 * do the same, but the thread sanitizer does not know them.
 */
#include "stats/window.h"

#include <sched.h>

#include "base/range.h"

static void begin_change(eplb_window *window)
{
    uint64_t version = atomic_load_explicit(&window->version, memory_order_relaxed);
    atomic_store_explicit(&window->version, version + 1, memory_order_relaxed);
}

static void end_change(eplb_window *window)
{
    uint64_t version = atomic_load_explicit(&window->version, memory_order_relaxed);
    atomic_store_explicit(&window->version, version + 1, memory_order_release);
}

static void set_clock(eplb_window *window, int64_t bucket, bool counting)
{
    uint64_t clock = atomic_load_explicit(&window->clock, memory_order_relaxed);
    clock = (uint64_t)(bucket + 1) << EPLB_CLOCK_TAG_SHIFT | (clock & EPLB_CLOCK_MAP) |
            (counting ? EPLB_CLOCK_COUNTING : 0);
    atomic_store_explicit(&window->clock, clock, memory_order_release);
}

static _Atomic uint64_t *steps_of(const eplb_window *window, int64_t bucket)
{
    return window->bucket_steps +
           (size_t)(bucket % window->buckets) * eplb_window_step_words(&window->shape);
}

static void begin_bucket(eplb_window *window, int64_t bucket, int64_t step)
{
    _Atomic uint64_t *words = steps_of(window, bucket);
    atomic_store_explicit(&words[0], (uint64_t)step, memory_order_release);
    for (size_t i = 1; i < eplb_window_step_words(&window->shape); i++) {
        atomic_store_explicit(&words[i], 0, memory_order_release);
    }
    atomic_store_explicit(&window->last_bucket, bucket, memory_order_release);
    window->steps_in_bucket = 0;
}

/* Marks the bucket's next step as one that counts. */
static void fill_step(eplb_window *window, int64_t bucket)
{
    int32_t step = window->steps_in_bucket;
    _Atomic uint64_t *word = steps_of(window, bucket) + 1 + step / 64;
    uint64_t bits = atomic_load_explicit(word, memory_order_relaxed);
    atomic_store_explicit(word, bits | (uint64_t)1 << (step % 64), memory_order_release);
}

eplb_status eplb_window_begin_step(eplb_window *window, eplb_step_kind kind, eplb_error *error)
{
    eplb_status status = eplb_check_range("window", "kind of step", (int64_t)kind,
                                          EPLB_STEP_COUNTED, EPLB_STEP_DUMMY, error);
    if (status != EPLB_OK) {
        return status;
    }
    int64_t first = atomic_load_explicit(&window->first_bucket, memory_order_relaxed);
    int64_t bucket = atomic_load_explicit(&window->last_bucket, memory_order_relaxed);
    int64_t step = atomic_load_explicit(&window->steps, memory_order_relaxed);
    bool counted = kind == EPLB_STEP_COUNTED && step >= window->skip_steps;
    begin_change(window);
    if (bucket < first || window->steps_in_bucket == window->shape.steps_per_bucket) {
        begin_bucket(window, ++bucket, step);
    }
    if (counted) {
        fill_step(window, bucket);
    }
    window->steps_in_bucket++;
    atomic_store_explicit(&window->steps, step + 1, memory_order_release);
    end_change(window);
    set_clock(window, bucket, counted);
    return EPLB_OK;
}

/* Recorders go on counting into the last bucket, which nobody looks at any more. */
void eplb_window_reset(eplb_window *window)
{
    int64_t bucket = atomic_load_explicit(&window->last_bucket, memory_order_relaxed);
    begin_change(window);
    atomic_store_explicit(&window->first_bucket, bucket + 1, memory_order_release);
    end_change(window);
}

/* The time as it is just now, perhaps in the midst of a change. */
static eplb_window_time peek(const eplb_window *window)
{
    eplb_window_time time = {
        .steps = atomic_load_explicit(&window->steps, memory_order_acquire),
        .first_bucket = atomic_load_explicit(&window->first_bucket, memory_order_acquire),
        .last_bucket = atomic_load_explicit(&window->last_bucket, memory_order_acquire),
    };
    int64_t in_ring = time.last_bucket - window->buckets + 1;
    time.first_bucket = in_ring > time.first_bucket ? in_ring : time.first_bucket;
    return time;
}

static void peek_steps(const eplb_window *window, eplb_window_time time, uint64_t *bucket_steps)
{
    size_t words = eplb_window_step_words(&window->shape);
    for (int64_t bucket = time.first_bucket; bucket <= time.last_bucket; bucket++) {
        const _Atomic uint64_t *from = steps_of(window, bucket);
        for (size_t i = 0; i < words; i++) {
            *bucket_steps++ = atomic_load_explicit(&from[i], memory_order_acquire);
        }
    }
}

eplb_window_time eplb_window_read_time(const eplb_window *window, uint64_t *bucket_steps)
{
    for (;;) {
        uint64_t version = atomic_load_explicit(&window->version, memory_order_acquire);
        eplb_window_time time = peek(window);
        if (bucket_steps != NULL) {
            peek_steps(window, time, bucket_steps);
        }
        if (version % 2 == 0 &&
            atomic_load_explicit(&window->version, memory_order_relaxed) == version) {
            return time;
        }
        (void)sched_yield();
    }
}
