/* SPDX-License-Identifier: MIT */
/* GLPK takes memory from malloc, not from hooks. Here its requests fail, one after another, through
 * a malloc of this program's own, and what is taken is counted. */
#include <pthread.h>
#include <stdatomic.h>

#include "programs.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

/* Requests of all threads but the one that tests. */
static struct {
    pthread_t tester;
    atomic_bool is_active;
    atomic_int requests;
    int fail_at; /* 0: none */
    atomic_int live;
    void *not_enlarged; /* the block of a realloc that failed */
} heap;

static bool is_counted(void)
{
    return atomic_load(&heap.is_active) && !pthread_equal(pthread_self(), heap.tester);
}

/* Counts a request; true when it must fail. */
static bool refuses(void)
{
    return is_counted() && atomic_fetch_add(&heap.requests, 1) + 1 == heap.fail_at;
}

static void *count(void *block)
{
    if (block != NULL && is_counted()) {
        atomic_fetch_add(&heap.live, 1);
    }
    return block;
}

void *malloc(size_t size)
{
    return refuses() ? NULL : count(__libc_malloc(size));
}

void *calloc(size_t items, size_t size)
{
    return refuses() ? NULL : count(__libc_calloc(items, size));
}

void *realloc(void *block, size_t size)
{
    if (refuses()) {
        heap.not_enlarged = block;
        return NULL;
    }
    void *moved = __libc_realloc(block, size);
    return block == NULL ? count(moved) : moved;
}

void free(void *block)
{
    if (block != NULL && is_counted()) {
        atomic_fetch_sub(&heap.live, 1);
    }
    __libc_free(block);
}

/* Blocks left behind. GLPK loses sight of one block when that cannot be enlarged; it is given back
 * here. */
static int left_behind(void)
{
    int live = atomic_load(&heap.live);
    if (live > 0 && heap.not_enlarged != NULL) {
        __libc_free(heap.not_enlarged);
        live--;
    }
    return live;
}

static eplb_ilp_solution solve_with_failure(hard_program *hard, int fail_at)
{
    hard_program_init(hard, NULL);
    eplb_ilp_limits limits;
    eplb_ilp_limits_init(&limits);
    limits.nodes = 20;
    heap.tester = pthread_self();
    heap.fail_at = fail_at;
    heap.not_enlarged = NULL;
    atomic_store(&heap.requests, 0);
    atomic_store(&heap.live, 0);
    atomic_store(&heap.is_active, true);
    eplb_ilp_solution solution = solve_hard(hard, &limits);
    atomic_store(&heap.is_active, false);
    eplb_ilp_model_free(&hard->model);
    return solution;
}

static void any_request_of_glpk_may_fail(void **state)
{
    (void)state;
    hard_program hard;
    (void)solve_with_failure(&hard, 0); /* the C library keeps time zones from the first time on */
    eplb_ilp_solution whole = solve_with_failure(&hard, 0);
    assert_int_equal(whole.outcome, EPLB_ILP_LIMIT);
    assert_int_equal(left_behind(), 0);
    int requests = atomic_load(&heap.requests);
    assert_true(requests > 100);
    int with_bound = 0;
    int better = 0;
    for (int fail_at = 1; fail_at <= requests; fail_at++) {
        eplb_ilp_solution solution = solve_with_failure(&hard, fail_at);
        assert_int_equal(solution.outcome, EPLB_ILP_FAILED);
        assert_contains(solution.reason, "memory");
        assert_int_equal(left_behind(), 0);
        assert_true(solution.has_values);
        assert_true(solution.objective <= hard.dealt);
        assert_true(hard.values[HARD_COLUMNS - 1] == solution.objective);
        assert_true(solution.bound <= whole.objective);
        with_bound += isfinite(solution.bound) ? 1 : 0;
        better += solution.objective < hard.dealt ? 1 : 0;
    }
    assert_true(with_bound > 0 && with_bound < requests);
    assert_true(better > 0); /* what was found before the failure is kept */
}

TEST_MAIN(cmocka_unit_test(any_request_of_glpk_may_fail))
