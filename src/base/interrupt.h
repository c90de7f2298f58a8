/* interrupt.h - lets the caller of the library interrupt the waits of its thread
 *
 * A host may have to check for something while one of its threads waits in the library (an interpreter
 * checks for signals). The thread registers a callback before the call; waits on its behalf call it many
 * times a second.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_INTERRUPT_H
#define ST_BASE_INTERRUPT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef bool st_interrupt_ask(void *context);

/* From now on, this thread's waits call `ask` (NULL: none). */
void st_interrupt_set(st_interrupt_ask *ask, void *context);

/* Calls the callback, which may take a while: hold no lock. Once the answer was true, it stays true. */
bool st_interrupted(void);
/* Whether the answer was true before; does not call the callback. */
bool st_was_interrupted(void);

/* pthread_cond_wait; but if a callback is set, it is called 40 times a second, without the lock, and the
 * function returns each time. True: the wait should end. */
bool st_interrupt_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
/* The same, but returns 40 times a second even without a callback. */
bool st_interrupt_look(pthread_cond_t *cond, pthread_mutex_t *lock);

/* Lets threads that work on behalf of another be interrupted together with it. The owner calls share and
 * unshare, which may be nested; the other threads call join. */
struct st_interrupt_shared {
    atomic_bool came;
    bool asks;
    struct st_interrupt_shared *outer;
};
void st_interrupt_share(struct st_interrupt_shared *shared);
void st_interrupt_join(struct st_interrupt_shared *shared);
void st_interrupt_unshare(struct st_interrupt_shared *shared);

#endif
