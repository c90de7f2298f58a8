/* loop.h - one thread that has many requests under way at once
 *
 * Libcurl's multi interface over epoll. Requests share connections that stay open: several at once on
 * one where the server speaks HTTP/2, one at a time on each of many else. A forked child has a loop of
 * its own: to use or to close a connection of its parent would disturb what the parent reads from it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_LOOP_H
#define ST_SOURCE_REMOTE_LOOP_H

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct st_loop;

/* A request with its repetitions. All three functions are called by the loop's thread. */
struct st_loop_job {
    const atomic_bool *cancel, *interrupted; /* NULL: never; looked at twenty times a second */
    bool (*begin)(
        struct st_loop_job *job); /* sets the options of job->curl; false: out of memory, and the end */
    uint64_t (*end)(struct st_loop_job *job,
                    CURLcode code);        /* when to begin again; 0: the job is gone */
    void (*stop)(struct st_loop_job *job); /* it was cancelled: the job is gone */
    /* The loop's: */
    CURL *curl;
    uint64_t due_ns;
    struct st_loop_job *next, *previous;
};

/* Sets what is the same for all requests; false: out of memory. */
typedef bool st_loop_prepare(CURL *curl);

/* At most so many requests at once. NULL: out of memory. */
struct st_loop *st_loop_new(st_loop_prepare *prepare, uint32_t most);
/* Stops all that is under way. True in the process that made it; in its child it is left as it is. */
bool st_loop_close(struct st_loop *loop);
/* This process's, which is put in the place of its parent's. NULL: out of memory. */
struct st_loop *st_loop_of(_Atomic(struct st_loop *) *place);
/* Hands the job over. 0, or an error number when no thread could be started. Any thread, the loop's too.
 */
int st_loop_add(struct st_loop *loop, struct st_loop_job *job);

#endif
