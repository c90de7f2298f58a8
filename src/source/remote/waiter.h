/* waiter.h - lets one thread wait for a result from another
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_WAITER_H
#define ST_SOURCE_REMOTE_WAITER_H

#include "base/err.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct st_waiter {
    atomic_bool interrupted; /* the waiting thread was interrupted: the operation should end soon */
    pthread_mutex_t lock;
    pthread_cond_t finished;
    bool done;
    int code;
    struct stoker_error *err;
};

void st_waiter_init(struct st_waiter *waiter, struct stoker_error *err);
/* Called once, by the other thread. */
void st_waiter_wake(struct st_waiter *waiter, int code, const struct stoker_error *err);
/* Waits for that; returns the code and sets the error. */
int st_waiter_wait(struct st_waiter *waiter);
void st_waiter_free(struct st_waiter *waiter);

#endif
