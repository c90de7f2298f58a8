/* failure.h - what becomes of samples that fail: they are made again, by the program, or are bad
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_FAILURE_H
#define ST_PIPE_FAILURE_H

#include "pipe/executor.h"

/* Puts the sample's name in front of the message. */
void st_bad_name(const struct stoker_loader *loader, uint64_t sample, struct stoker_error *err);
/* A read returned STOKER_ECANCELED: returns that code if the epoch is being stopped, else STOKER_EIO.
 * Only the loader knows whether it is being stopped; a source's return code is no evidence. */
int st_bad_cancelled(struct stoker_loader *loader, struct stoker_error *err);

/* ---- made again (retry.c) ------------------------------------------------------------------------- */

/* Reads the sample synchronously and makes it for the row; `key` as in run.h. Transient failures are
 * retried for a while and returned only if that did not help. If err->code is not 0, it is the outcome
 * of a first attempt. STOKER_ECANCELED: the epoch is being stopped. */
int st_retry_sample(struct st_worker *worker, uint64_t sample, uint64_t key, struct st_slot *slot,
                    uint32_t row, struct stoker_error *err);
/* One attempt, which waits for memory as often as necessary. The error names the sample. */
int st_retry_once(struct st_worker *worker, uint64_t sample, uint64_t key, struct st_slot *slot,
                  uint32_t row, struct stoker_error *err);

/* ---- made by the program (rescue.c) --------------------------------------------------------------- */

/* Asks the program about a sample that failed with *err, and makes it from the image that it has for it.
 * Returns 0, or the code of *err, which may be another error than before. */
int st_rescue_sample(struct st_worker *worker, uint64_t sample, uint64_t key, struct st_slot *slot,
                     uint32_t row, struct stoker_error *err);
/* Calls the program for all workers that wait for that. Lock held; true: it was released during the
 * calls. */
bool st_rescue_serve(struct stoker_loader *loader);

/* ---- bad (bad.c) ---------------------------------------------------------------------------------- */

/* A sample failed with err: applies the policy to its row and records the failure in the slot. If the
 * sample is not to blame, retries it, and stops the epoch if that does not help. */
void st_bad_sample(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t sample,
                   const struct stoker_error *err);
/* The batch is due: writes its failures to the ledger and returns whether it can be delivered. Lock
 * held. */
int st_bad_deliver(struct stoker_loader *loader, struct st_slot *slot, struct stoker_error *err);
/* Whether the batch has a failure that no policy covers. Lock held. */
bool st_bad_is_fatal(const struct st_slot *slot);

#endif
