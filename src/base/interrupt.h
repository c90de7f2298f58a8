/* interrupt.h - whether a wait of the calling thread should end, asked of whoever called the library
 *
 * A host may have to look for something while one of its threads waits in here (an interpreter: for
 * signals). The thread says whom to ask, before it calls; who waits on its behalf asks many times a
 * second.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_INTERRUPT_H
#define ST_BASE_INTERRUPT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef bool st_interrupt_ask(void *context);

/* From now on this thread's waits ask `ask` (NULL: nobody). */
void st_interrupt_set(st_interrupt_ask *ask, void *context);

/* Asks, and so may take a while: no lock may be held. Once it was answered by true it stays true. */
bool st_interrupted(void);
/* Whether that was so, without asking. */
bool st_interrupt_came(void);

/* pthread_cond_wait, but where there is somebody to ask it asks, and returns, 40 times a second; the
 * lock is free while it asks. True: the wait should end. */
bool st_interrupt_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
/* The same, but returns 40 times a second in any case. */
bool st_interrupt_look(pthread_cond_t *cond, pthread_mutex_t *lock);

/* Threads that work for another one end their waits with it. That one begins and ends it, and may do so
 * inside of another; the others join. */
struct st_interrupt_shared {
    atomic_bool came;
    bool asks;
    struct st_interrupt_shared *outer;
};
void st_interrupt_share(struct st_interrupt_shared *shared);
void st_interrupt_join(struct st_interrupt_shared *shared);
void st_interrupt_unshare(struct st_interrupt_shared *shared);

#endif
