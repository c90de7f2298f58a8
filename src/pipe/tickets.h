/* tickets.h - hands out the tickets of an epoch, and completes batches whose rows are done
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_TICKETS_H
#define ST_PIPE_TICKETS_H

#include "pipe/executor.h"

/* Tickets of one batch, taken by a worker. */
struct st_tickets {
    struct st_slot *slot;
    uint64_t ticket; /* the first */
    uint32_t row, count;
};

/* Number of rows of the current batch that nobody has taken; begins the next batch if necessary. 0:
 * nothing to do now. Lock held; may be released for a while. */
uint32_t st_tickets_left(struct stoker_loader *loader);
/* Takes `count` of them; call right after st_tickets_left, with the lock still held. True: there may be
 * work for another worker, to be woken by st_tickets_share once the lock is released. */
bool st_tickets_take(struct stoker_loader *loader, uint32_t count, struct st_tickets *out);
void st_tickets_share(struct stoker_loader *loader, bool more);
/* Their rows are made. Lock held; released while a batch is submitted to the device. */
void st_tickets_done(struct stoker_loader *loader, const struct st_tickets *tickets);

#endif
