/* waiter.h - a thread that waits for what another one will end
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
    atomic_bool interrupted; /* who waits was interrupted: what it waits for should end soon */
    pthread_mutex_t lock;
    pthread_cond_t through;
    bool done;
    int code;
    struct stoker_error *err;
};

void st_waiter_init(struct st_waiter *waiter, struct stoker_error *err);
/* By the other thread, once. */
void st_waiter_wake(struct st_waiter *waiter, int code, const struct stoker_error *err);
/* Until then; returns the code, with the error. */
int st_waiter_wait(struct st_waiter *waiter);
void st_waiter_free(struct st_waiter *waiter);

#endif
