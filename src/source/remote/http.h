/* http.h - range requests with libcurl
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
    char *name;         /* for messages */
    const char *sign;   /* CURLOPT_AWS_SIGV4; NULL: requests are not signed */
    const char *login;  /* "key:secret", if signed */
    const char *token;  /* the session token as a header; NULL: none */
    bool s3;            /* an S3 object: redirections are not followed */
    const char *region; /* S3: the region of the request */
};

/* The version of an object when it was first requested. */
struct st_http_version {
    uint64_t size;
    int64_t modified_ns; /* 0: not known */
    char tag[256];       /* its ETag or Last-Modified; "": the server sends neither */
};

/* Where a part of a range goes; into NULL: it is discarded. */
struct st_http_part {
    uint8_t *into;
    uint64_t size;
};

/* A request in flight. The caller owns it and keeps it, with everything it points to, until `done`. */
struct st_http_call {
    const struct st_http_target *target;
    const struct st_http_version *version; /* required version; NULL: get its first bytes and version */
    uint64_t offset;
    const struct st_http_part *parts; /* consecutive, none of them empty */
    uint32_t part_count;
    const atomic_bool *cancel, *interrupted; /* either one cancels it; NULL: never */
    /* Called by another thread: when a part has arrived (may be NULL), and when all is done or
     * failed. */
    void (*part)(struct st_http_call *call, uint32_t part);
    void (*done)(struct st_http_call *call, int code, const struct stoker_error *err);
    /* Set when done, if there was no version: */
    uint64_t got;
    struct st_http_version learned;
    struct st_waiter *waiter; /* st_http_wait's */
    uint64_t
        whole; /* not 0: no support for ranges, and the object of this size does not fit the parts */
};

/* `budget_ms`: for one request including retries; `connections`: the most at once, 0: the default. */
int st_http_open(struct st_http **out, uint32_t budget_ms, uint32_t connections,
                 struct stoker_error *err);
void st_http_close(struct st_http *http); /* NULL is allowed */

/* Starts a request; on failure `done` is not called. */
int st_http_start(struct st_http *http, struct st_http_call *call, struct stoker_error *err);
/* Starts it and waits until it ends or this thread is interrupted (base/interrupt.h): STOKER_ECANCELED.
 * Uses `done` internally. */
int st_http_wait(struct st_http *http, struct st_http_call *call, struct stoker_error *err);

/* The file of trusted certificates for CURLOPT_CAINFO: SSL_CERT_FILE if that is set, else the file that
 * libcurl was built to use, else the one of this system. NULL: libcurl's own default applies. */
const char *st_authorities(void);

#endif
