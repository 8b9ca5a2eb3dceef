/* SPDX-License-Identifier: MIT */
/* The threads of a call. */
#ifndef EPLB_PLANNER_THREADS_H
#define EPLB_PLANNER_THREADS_H

#include <stddef.h>
#include <stdint.h>

#define EPLB_MAX_THREADS 1024

/*
 * Calls work with each of `count` (1..EPLB_MAX_THREADS) workers, an array whose items take `size`
 * bytes: with the first on the calling thread, with each other on a thread of its own. Returns when
 * all have ended. A thread that cannot be started is no loss but of time, so workers must take
 * their parts from what they share.
 */
void eplb_threads_run(void *(*work)(void *), void *workers, size_t size, int32_t count);

#endif
