/* threads.h - starting threads that do not disturb the host program
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_THREADS_H
#define ST_BASE_THREADS_H

#include <pthread.h>
#include <stdint.h>

/* Starts a thread with all signals blocked but those of its own faults (SIGSEGV, SIGBUS, ...): handlers belong
 * to the host's own threads. Returns 0 or an error number. */
int st_thread_start(pthread_t *out, void *(*body)(void *), void *argument, const char *name);

/* The calling thread stands back behind others of the process that want a CPU at the same time. */
void st_thread_stand_back(void);

/* Runs work(context) in up to `threads` threads, this one among them, and returns when all have. */
void st_threads_run(uint32_t threads, void (*work)(void *), void *context);

#endif
