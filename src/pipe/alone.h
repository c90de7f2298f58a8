/* alone.h - turns in which one worker makes a sample and all others hold nothing
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_ALONE_H
#define ST_PIPE_ALONE_H

#include "pipe/executor.h"

/* The worker has waited for memory since `began`. */
void st_wait_noted(struct st_worker *worker, uint64_t began);
/* Lists of the gate; lock held. */
void st_wait_unlink(struct st_gate_wait **list, const struct st_gate_wait *wait);
bool st_wait_is_oldest(const struct st_gate_wait *list, const struct st_gate_wait *wait);

/* Frees everything that the worker keeps from sample to sample. */
void st_alone_shed(struct st_worker *worker);
/* Before a sample: lets workers that want a turn alone have it first. */
void st_alone_yield(struct st_worker *worker);
/* Waits for the worker's turn, which st_gate_leave ends; the worker is outside the gate. Fails only if
 * the epoch is being stopped. */
int st_alone_take(struct st_worker *worker, const struct st_slot *slot, uint32_t row,
                  struct stoker_error *err);
void st_alone_end(struct st_worker *worker);
/* Whether a turn alone has to wait until this worker has put down what it holds. Threads of the JPEG
 * hardware hold the files of a chunk all the time, within parts of their own. */
bool st_alone_waits_for(const struct st_worker *worker);

#endif
