/* interrupt.c - lets the caller of the library interrupt the waits of its thread
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/interrupt.h"

#include <errno.h>
#include <time.h>

enum { LOOK_MS = 25 };

static _Thread_local struct {
    st_interrupt_ask *ask;
    void *context;
    bool came;
    struct st_interrupt_shared *shared;
} of_thread;

void st_interrupt_set(st_interrupt_ask *ask, void *context)
{
    of_thread.ask = ask;
    of_thread.context = context;
    of_thread.came = false;
}

bool st_interrupted(void)
{
    if (of_thread.ask && !of_thread.came)
        of_thread.came = of_thread.ask(of_thread.context);
    if (of_thread.came && of_thread.shared)
        atomic_store(&of_thread.shared->came, true);
    return of_thread.came;
}

bool st_was_interrupted(void) { return of_thread.came; }

/* ---- waits -------------------------------------------------------------------------------------- */

bool st_interrupt_look(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    if (pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT || !of_thread.ask)
        return of_thread.came;
    pthread_mutex_unlock(lock);
    const bool ends = st_interrupted();
    pthread_mutex_lock(lock);
    return ends;
}

bool st_interrupt_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    if (of_thread.ask)
        return st_interrupt_look(cond, lock);
    pthread_cond_wait(cond, lock);
    return false;
}

/* ---- threads that work on behalf of another ------------------------------------------------------ */

void st_interrupt_share(struct st_interrupt_shared *shared)
{
    atomic_init(&shared->came, of_thread.came);
    shared->asks = of_thread.ask != NULL;
    shared->outer = of_thread.shared;
    of_thread.shared = shared;
}

static bool has_come(void *shared) { return atomic_load(&((struct st_interrupt_shared *)shared)->came); }

void st_interrupt_join(struct st_interrupt_shared *shared)
{
    if (shared->asks)
        st_interrupt_set(has_come, shared);
}

void st_interrupt_unshare(struct st_interrupt_shared *shared)
{
    of_thread.shared = shared->outer;
    if (of_thread.came && of_thread.shared)
        atomic_store(&of_thread.shared->came, true);
}
