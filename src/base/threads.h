/* threads.h - starts threads that do not disturb the host program
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_THREADS_H
#define ST_BASE_THREADS_H

#include <pthread.h>
#include <stdint.h>

/* Starts a thread that blocks all signals except those caused by its own faults (SIGSEGV, SIGBUS, ...),
 * because signal handlers belong to the host's threads. Returns 0 or an error number. */
int st_thread_start(pthread_t *out, void *(*body)(void *), void *argument, const char *name);

/* Lowers the priority of the calling thread relative to the other threads of the process. */
void st_thread_lower_priority(void);

/* Runs work(context) in up to `threads` threads, including the calling one, and returns when all are
 * done. */
void st_threads_run(uint32_t threads, void (*work)(void *), void *context);

#endif
