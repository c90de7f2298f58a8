/* threads.h - starts threads that do not disturb the host program
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_THREADS_H
#define ST_BASE_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* A flag that one thread sets and others read, for headers that are also compiled as C++. */
struct st_flag {
    atomic_bool set;
};

/* Starts a thread that blocks all signals except those caused by its own faults (SIGSEGV, SIGBUS, ...),
 * because signal handlers belong to the host's threads. Returns 0 or an error number. */
int st_thread_start(pthread_t *out, void *(*body)(void *), void *argument, const char *name);

/* Lowers the priority of the calling thread relative to the other threads of the process. */
void st_thread_lower_priority(void);

/* Runs work(context) in up to `threads` threads, including the calling one, and returns when all are
 * done. */
void st_threads_run(uint32_t threads, void (*work)(void *), void *context);

#endif
