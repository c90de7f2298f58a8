/* waiter.c - a thread that waits for what another one will end
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/waiter.h"

#include "base/interrupt.h"

void st_waiter_init(struct st_waiter *waiter, struct stoker_error *err)
{
    *waiter = (struct st_waiter){
        .lock = PTHREAD_MUTEX_INITIALIZER, .through = PTHREAD_COND_INITIALIZER, .err = err};
}

void st_waiter_wake(struct st_waiter *waiter, int code, const struct stoker_error *err)
{
    pthread_mutex_lock(&waiter->lock);
    waiter->done = true;
    waiter->code = code;
    if (code && waiter->err)
        *waiter->err = *err;
    pthread_cond_signal(&waiter->through);
    pthread_mutex_unlock(&waiter->lock);
}

int st_waiter_wait(struct st_waiter *waiter)
{
    pthread_mutex_lock(&waiter->lock);
    while (!waiter->done)
        if (st_interrupt_wait(&waiter->through, &waiter->lock))
            atomic_store(&waiter->interrupted, true);
    pthread_mutex_unlock(&waiter->lock);
    return waiter->code;
}

void st_waiter_free(struct st_waiter *waiter)
{
    pthread_cond_destroy(&waiter->through);
    pthread_mutex_destroy(&waiter->lock);
}
