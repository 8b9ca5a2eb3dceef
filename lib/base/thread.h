/* SPDX-License-Identifier: MIT */
/* Threads that the libraries start. */
#ifndef EPLB_BASE_THREAD_H
#define EPLB_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/*
 * As pthread_create. Signals meant for the process are not taken by the new thread, whose stack and
 * locks the host's handlers know nothing of: all are blocked but those that a thread raises itself,
 * and the one that profilers send to each thread.
 */
static inline int eplb_thread_start(pthread_t *thread, const pthread_attr_t *attributes,
                                    void *(*work)(void *), void *argument)
{
    const int open[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP};
    sigset_t blocked;
    sigset_t before;
    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
        (void)sigdelset(&blocked, open[i]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before); /* a new thread has that of its maker */
    int code = pthread_create(thread, attributes, work, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

#endif
