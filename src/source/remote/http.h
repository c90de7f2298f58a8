/* http.h - ranged requests by libcurl
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_HTTP_H
#define ST_SOURCE_REMOTE_HTTP_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct st_http;
struct st_waiter;

/* Where an object is. */
struct st_http_target {
    char *url;
    char *name;         /* in messages */
    const char *sign;   /* CURLOPT_AWS_SIGV4; NULL: requests are not signed */
    const char *login;  /* "key:secret", if signed */
    const char *token;  /* of the session, as a header; NULL: none */
    bool s3;            /* a bucket's object: no redirections are followed */
    const char *region; /* of S3: which was asked */
};

/* What an object was when it was first asked for. */
struct st_http_version {
    uint64_t size;
    int64_t modified_ns; /* 0: not known */
    char tag[256];       /* its ETag, else its Last-Modified; "": the server says neither */
};

/* Where bytes of a range go; into NULL: nowhere. */
struct st_http_part {
    uint8_t *into;
    uint64_t size;
};

/* A request that is under way. It is the caller's, who keeps it, and all it points to, until `done`. */
struct st_http_call {
    const struct st_http_target *target;
    const struct st_http_version
        *version; /* the object must be of this one; NULL: its first bytes, and what it is */
    uint64_t offset;
    const struct st_http_part *parts; /* one behind the other, none of them empty */
    uint32_t part_count;
    const atomic_bool *cancel, *interrupted; /* either ends it; NULL: it cannot be */
    /* By another thread: a part is there (NULL: nobody wants to know); all is done, with 0 or why not.
     */
    void (*part)(struct st_http_call *call, uint32_t part);
    void (*done)(struct st_http_call *call, int code, const struct stoker_error *err);
    /* Without a version, when done: */
    uint64_t got;
    struct st_http_version learned;
    struct st_waiter *waiter; /* st_http_wait's */
    uint64_t whole; /* the server knows no ranges, and the object, of so many bytes, is too large for the
                       parts */
};

/* `budget_ms`: for one request with its repetitions; `connections`: the most at once, 0: as many as is
 * usual. */
int st_http_open(struct st_http **out, uint32_t budget_ms, uint32_t connections,
                 struct stoker_error *err);
void st_http_close(struct st_http *http); /* NULL is fine */

/* Begins a request; on failure `done` is not called. */
int st_http_start(struct st_http *http, struct st_http_call *call, struct stoker_error *err);
/* Begins it, and waits for its end, or until this thread is interrupted (base/interrupt.h): STOKER_ECANCELED. `done` is
 * for internal use. */
int st_http_wait(struct st_http *http, struct st_http_call *call, struct stoker_error *err);

#endif
