/* reader.h - fetches the bytes of samples for the workers that decode them
 *
 * Work is numbered by tickets 0, 1, 2, ... If a ticket's bytes are in memory, its worker reads them
 * itself. If reads block, a backend reads ahead, with up to `depth` tickets in flight or ready,
 * independent of the number of workers, so that a slow store delays nobody as long as requests are early
 * enough. There are three backends: io_uring, a pool of threads that call pread, and none (inline).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_READER_READER_H
#define ST_SOURCE_READER_READER_H

#include "source/source.h"

struct st_reader;

enum st_reader_backend { ST_READER_AUTO, ST_READER_URING, ST_READER_POOL, ST_READER_INLINE };

/* Maps a ticket to a sample. Called by the reader's threads. */
typedef uint64_t st_reader_plan(void *context, uint64_t ticket);

/* `depth` must be at least the number of workers plus one. STOKER_READER=uring|pool|inline overrides
 * AUTO. With AUTO, sources in memory need no backend; files are read by io_uring if the kernel allows
 * it, otherwise by the pool; sources with `read` are always read by the pool. */
int st_reader_open(struct st_reader **out, struct stoker_dataset *data, enum st_reader_backend backend,
                   uint32_t depth, struct stoker_error *err);
/* The default number of samples to read ahead: more by URL, where latency dominates. */
uint32_t st_reader_depth(const struct stoker_dataset *data);
/* To be called before the first epoch: the backend then reads ahead even if reads do not block. For
 * tests, whose reads never do. */
void st_reader_eager(struct st_reader *reader);
/* Limits the bytes that are read ahead: being read, ready, lent, or kept as empty buffers. The size of a
 * read is estimated from the largest recent one; the first read runs alone. This limits the backend
 * only: a caller whose ticket was not read ahead, or is larger than expected, reads it itself, so any
 * budget is sufficient. Default:
 * unlimited. `account` (may be NULL) counts the bytes. To be called before the first epoch. */
void st_reader_budget(struct st_reader *reader, uint64_t bytes, struct st_account *account);
/* Limits the memory for the bytes of one sample: a larger one fails before it is read. Default:
 * unlimited. To be called before the first epoch. */
void st_reader_sample_limit(struct st_reader *reader, uint64_t bytes);
/* Limits the number of tickets that are read ahead, up to the depth that the reader was opened with. Any
 * time. */
void st_reader_limit(struct st_reader *reader, uint32_t tickets);
/* Whether that limit has delayed the backend since the last call. */
bool st_reader_was_held(struct st_reader *reader);
/* Starts an epoch of tickets [0, count). The previous one must be stopped. */
int st_reader_start(struct st_reader *reader, uint64_t count, st_reader_plan *plan, void *context,
                    struct stoker_error *err);
/* Waits for the ticket's bytes; each ticket is requested once, by any thread, roughly in order. The
 * bytes stay valid until st_reader_done(ticket). On failure the ticket is already done; if the sample
 * exceeds the limit, the failure is STOKER_ENOMEM and out->size the sample's size, otherwise 0. After
 * st_reader_cancel it returns STOKER_ECANCELED. */
int st_reader_get(struct st_reader *reader, uint64_t ticket, struct st_bytes *out,
                  struct stoker_error *err);
/* The same for a caller with a buffer for each ticket that it holds: what it reads itself goes there.
 * `*out` is valid until that buffer is used again or st_reader_done. */
int st_reader_get_into(struct st_reader *reader, uint64_t ticket, struct st_buffer *own,
                       struct st_bytes *out, struct stoker_error *err);
void st_reader_done(struct st_reader *reader, uint64_t ticket);
/* Wakes all callers of st_reader_get. Any thread. */
void st_reader_cancel(struct st_reader *reader);
/* Ends the epoch: cancels, and returns when no read is in flight. No thread may be in st_reader_get. */
void st_reader_stop(struct st_reader *reader);
void st_reader_close(struct st_reader *reader); /* NULL is allowed */

/* Whether samples are already in memory, so that nothing is read. */
bool st_reader_in_memory(const struct st_reader *reader);

struct st_reader_stats {
    const char *backend;
    const char
        *note; /* why it is not a faster one; NULL: it is the fastest, or nothing was read ahead */
    uint64_t ahead;                          /* samples read by the backend */
    uint64_t in_flight_max;                  /* the most at once */
    uint64_t buffer_bytes, buffer_bytes_max; /* bytes limited by the budget: now, and the most so far */
};
void st_reader_stats(struct st_reader *reader, struct st_reader_stats *out);

/* Reads one sample synchronously, without a reader: for substitutes and single samples. `*out` is in
 * `buffer` or in the source's memory. If buffer->limit refused the sample, buffer->refused is its
 * size. */
int st_read_sample(struct stoker_dataset *data, uint64_t sample, struct st_buffer *buffer,
                   struct st_bytes *out, struct stoker_error *err);
/* The same; if `cancel` (NULL: never) becomes true, a read by URL fails at once with
 * STOKER_ECANCELED. */
int st_read_until(struct stoker_dataset *data, uint64_t sample, const atomic_bool *cancel,
                  struct st_buffer *buffer, struct st_bytes *out, struct stoker_error *err);

#endif
