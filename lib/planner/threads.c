/* SPDX-License-Identifier: MIT */
#include "planner/threads.h"

#include "base/thread.h"

void eplb_threads_run(void *(*work)(void *), void *workers, size_t size, int32_t count)
{
    pthread_t threads[EPLB_MAX_THREADS];
    char *worker = workers;
    int32_t started = 1;
    while (started < count &&
           eplb_thread_start(&threads[started], NULL, work, worker + (size_t)started * size) == 0) {
        started++;
    }
    (void)work(worker);
    for (int32_t i = 1; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}
