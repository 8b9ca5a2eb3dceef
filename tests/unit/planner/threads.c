/* SPDX-License-Identifier: MIT */
/* Workers on threads, also where threads cannot be started: pthread_create is wrapped here. */
#include "support.h"

#include "planner/threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define WORKERS 5
#define PARTS 40

static int32_t most_threads; /* that can be started */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *argument)
{
    if (most_threads <= 0) {
        return EAGAIN;
    }
    most_threads--;
    return __real_pthread_create(thread, attributes, routine, argument);
}

typedef struct worker {
    atomic_int *next;
    int32_t calls;
    pthread_t thread;
    int32_t parts;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    w->calls++;
    w->thread = pthread_self();
    while (atomic_fetch_add(w->next, 1) < PARTS) {
        w->parts++;
    }
    return NULL;
}

/* Runs as many workers; returns how many were called. */
static int32_t run(int32_t count)
{
    atomic_int next = 0;
    worker workers[WORKERS] = {0};
    for (int32_t i = 0; i < count; i++) {
        workers[i].next = &next;
    }
    eplb_threads_run(work, workers, sizeof(workers[0]), count);
    int32_t called = 0;
    int32_t parts = 0;
    for (int32_t i = 0; i < WORKERS; i++) {
        assert_true(workers[i].calls <= 1);
        bool is_here = workers[i].calls > 0 && pthread_equal(workers[i].thread, pthread_self());
        assert_int_equal(is_here, i == 0);
        called += workers[i].calls;
        parts += workers[i].parts;
    }
    assert_int_equal(parts, PARTS);
    return called;
}

static void each_worker_has_a_thread_and_the_first_the_calling_one(void **state)
{
    (void)state;
    for (int32_t count = 1; count <= WORKERS; count++) {
        most_threads = WORKERS;
        assert_int_equal(run(count), count);
        assert_int_equal(most_threads, WORKERS - (count - 1));
    }
}

static void threads_that_do_not_start_leave_their_parts_to_the_others(void **state)
{
    (void)state;
    for (int32_t most = 0; most < WORKERS - 1; most++) {
        most_threads = most;
        assert_int_equal(run(WORKERS), 1 + most);
    }
}

TEST_MAIN(cmocka_unit_test(each_worker_has_a_thread_and_the_first_the_calling_one),
          cmocka_unit_test(threads_that_do_not_start_leave_their_parts_to_the_others))
