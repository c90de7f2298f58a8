/* worker.h - the worker loop: take tickets, make their samples, count their rows as done
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_WORKER_H
#define ST_PIPE_WORKER_H

#include "pipe/executor.h"

/* Reads a ticket's bytes, with `own` as in st_reader_get_into; the caller calls st_reader_done. If this
 * fails, the caller only has to call st_worker_settle, unless the read was cancelled. */
int st_worker_fetch(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t ticket,
                    struct st_buffer *own, struct st_bytes *bytes, struct stoker_error *err);
/* Makes the sample from these bytes, releases them, and settles the row. */
void st_worker_make(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t ticket,
                    struct st_bytes bytes);
/* The row is made or, with rc != 0, it failed: it is made again, or the on_error policy is applied. */
void st_worker_settle(struct st_worker *worker, struct st_slot *slot, uint32_t row, int rc,
                      struct stoker_error *err);

/* Takes tickets and makes their samples. False: nothing to do now. Called with the lock held, and
 * returns with it held. */
bool st_worker_step(struct st_worker *worker);
void *st_worker_main(void *worker);
/* Initialises a zeroed worker. */
void st_worker_equip(struct st_worker *worker, struct stoker_loader *loader);
void st_worker_free(struct st_worker *worker);

#endif
