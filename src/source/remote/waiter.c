/* waiter.c - lets one thread wait for a result from another
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/waiter.h"

#include "base/interrupt.h"

void st_waiter_init(struct st_waiter *waiter, struct stoker_error *err)
{
    *waiter = (struct st_waiter){
        .lock = PTHREAD_MUTEX_INITIALIZER, .finished = PTHREAD_COND_INITIALIZER, .err = err};
}

void st_waiter_wake(struct st_waiter *waiter, int code, const struct stoker_error *err)
{
    pthread_mutex_lock(&waiter->lock);
    waiter->done = true;
    waiter->code = code;
    if (code && waiter->err)
        *waiter->err = *err;
    pthread_cond_signal(&waiter->finished);
    pthread_mutex_unlock(&waiter->lock);
}

int st_waiter_wait(struct st_waiter *waiter)
{
    pthread_mutex_lock(&waiter->lock);
    while (!waiter->done)
        if (st_interrupt_wait(&waiter->finished, &waiter->lock))
            atomic_store(&waiter->interrupted, true);
    pthread_mutex_unlock(&waiter->lock);
    return waiter->code;
}

void st_waiter_free(struct st_waiter *waiter)
{
    pthread_cond_destroy(&waiter->finished);
    pthread_mutex_destroy(&waiter->lock);
}
