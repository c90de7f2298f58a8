/* loop.h - one thread that runs many requests concurrently
 *
 * It uses libcurl's multi interface with epoll. Requests share persistent connections: several at once
 * per connection if the server speaks HTTP/2, otherwise one at a time on each of many. A forked child
 * has its own loop, because using or closing its parent's connections would disturb the parent.
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

/* A request with its retries. All three functions are called by the loop's thread. */
struct st_loop_job {
    const atomic_bool *cancel, *interrupted; /* NULL: never; checked 20 times per second */
    /* Sets the options of job->curl; false: out of memory, which ends the job. */
    bool (*begin)(struct st_loop_job *job);
    /* Returns when to try again; 0: the job is finished and freed. */
    uint64_t (*end)(struct st_loop_job *job, CURLcode code);
    void (*stop)(struct st_loop_job *job); /* it was cancelled; frees the job */
    /* Used by the loop: */
    CURL *curl;
    uint64_t due_ns;
    struct st_loop_job *next, *previous;
};

/* Sets the options that are the same for all requests; false: out of memory. */
typedef bool st_loop_prepare(CURL *curl);

/* Runs at most `most` requests at once. NULL: out of memory. */
struct st_loop *st_loop_new(st_loop_prepare *prepare, uint32_t most);
/* Stops all requests. Returns true in the process that created the loop; in a child nothing is done. */
bool st_loop_close(struct st_loop *loop);
/* This process's loop; in a child, replaces the parent's. NULL: out of memory. */
struct st_loop *st_loop_of(_Atomic(struct st_loop *) *place);
/* Adds a job. Returns 0, or an error number if no thread could be started. Any thread, including the
 * loop's. */
int st_loop_add(struct st_loop *loop, struct st_loop_job *job);

#endif
