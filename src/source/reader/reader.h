/* reader.h - brings the bytes of samples to the workers that decode them
 *
 * Work is numbered by tickets 0, 1, 2, ... Who asks for a ticket whose bytes are in memory reads them
 * itself. Where the store makes readers sleep, an engine reads ahead of them, up to `depth` tickets in
 * flight or ready, whatever the number of workers, so that a slow store delays nobody as long as it is
 * asked early enough. Three engines: io_uring, a pool of threads that pread, and none (inline).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_READER_READER_H
#define ST_SOURCE_READER_READER_H

#include "source/source.h"

struct st_reader;

enum st_reader_engine { ST_READER_AUTO, ST_READER_URING, ST_READER_POOL, ST_READER_INLINE };

/* Which sample a ticket stands for. Called by the reader's threads. */
typedef uint64_t st_reader_plan(void *context, uint64_t ticket);

/* `depth` is at least the number of workers plus one. STOKER_READER=uring|pool|inline overrides AUTO.
 * AUTO takes memory and inline sources as they are, files by io_uring where the kernel allows, else the
 * pool; sources with `read` always by the pool. */
int st_reader_open(struct st_reader **out, struct stoker_dataset *data, enum st_reader_engine engine,
                   uint32_t depth, struct stoker_error *err);
/* How many samples to read ahead where nobody says: more by URL, where a request takes its time whatever its size. */
uint32_t st_reader_depth(const struct stoker_dataset *data);
/* Before the first epoch: the engine reads ahead even of a store that is in memory, for callers who take
 * many tickets at once and have CPUs to spare. */
void st_reader_eager(struct st_reader *reader);
/* At most so many bytes are read ahead: being read, ready, lent, or kept as empty buffers. What a read
 * will need is guessed from the largest lately; the first one goes alone. It bounds the engine only: a
 * caller whose ticket was not read ahead reads it itself, so that any budget is enough. Default: no
 * bound. `account` (may be NULL) counts them. Before the first epoch. */
void st_reader_budget(struct st_reader *reader, uint64_t bytes, struct st_account *account);
/* From now on no more than so many tickets are read ahead: fewer than it was opened with, or as many. Any time. */
void st_reader_limit(struct st_reader *reader, uint32_t tickets);
/* Whether that kept the engine from reading on since this was asked last. */
bool st_reader_was_held(struct st_reader *reader);
/* Begins an epoch of tickets [0, count). The one before must be stopped. */
int st_reader_start(struct st_reader *reader, uint64_t count, st_reader_plan *plan, void *context,
                    struct stoker_error *err);
/* Waits until the ticket's bytes are there; each ticket is asked for once, by any thread, roughly in
 * order. The bytes stay until st_reader_done(ticket). On failure the ticket is done already. After
 * st_reader_cancel it answers STOKER_ECANCELED. */
int st_reader_get(struct st_reader *reader, uint64_t ticket, struct st_bytes *out,
                  struct stoker_error *err);
/* The same for one who holds one ticket at a time: what it reads itself goes to a buffer of its own,
 * which it keeps from ticket to ticket. `*out` is valid until that buffer is used again or
 * st_reader_done. */
int st_reader_get_into(struct st_reader *reader, uint64_t ticket, struct st_buffer *own,
                       struct st_bytes *out, struct stoker_error *err);
void st_reader_done(struct st_reader *reader, uint64_t ticket);
/* Wakes every waiting get. Any thread. */
void st_reader_cancel(struct st_reader *reader);
/* Ends the epoch: cancels, and returns when no read is in flight. No thread may be inside get. */
void st_reader_stop(struct st_reader *reader);
void st_reader_close(struct st_reader *reader); /* NULL is fine */

/* Whether samples lie in memory already, so that nothing is read. */
bool st_reader_in_memory(const struct st_reader *reader);

struct st_reader_stats {
    const char *engine;
    const char *note; /* why it is not a better one; NULL: it is the best, or nothing was read ahead */
    uint64_t ahead;   /* samples that the engine read */
    uint64_t in_flight_max;                  /* of them at once */
    uint64_t buffer_bytes, buffer_bytes_max; /* what the budget bounds: now, and the most so far */
};
void st_reader_stats(struct st_reader *reader, struct st_reader_stats *out);

/* Reads one sample here and now, without a reader: for substitutes and single samples. `*out` lies in
 * `buffer` or in the source's own memory. */
int st_read_sample(struct stoker_dataset *data, uint64_t sample, struct st_buffer *buffer,
                   struct st_bytes *out, struct stoker_error *err);
/* The same; where `cancel` (NULL: never) becomes true, a read by URL ends with STOKER_ECANCELED at once. */
int st_read_until(struct stoker_dataset *data, uint64_t sample, const atomic_bool *cancel,
                  struct st_buffer *buffer, struct st_bytes *out, struct stoker_error *err);

#endif
