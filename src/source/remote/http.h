/* http.h - ranged requests by libcurl
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_HTTP_H
#define ST_SOURCE_REMOTE_HTTP_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct st_http;

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

/* `budget_ms`: for one request with its repetitions. */
int st_http_open(struct st_http **out, uint32_t budget_ms, struct stoker_error *err);
void st_http_close(struct st_http *http); /* NULL is fine */

/* Reads the object's first bytes, up to `room`, and learns its version. */
int st_http_first(struct st_http *http, const struct st_http_target *target, void *into, uint64_t room,
                  uint64_t *got, struct st_http_version *out, struct stoker_error *err);
/* Reads a range of the object, which must be of this version. */
int st_http_read(struct st_http *http, const struct st_http_target *target,
                 const struct st_http_version *version, uint64_t offset, void *into, uint64_t size,
                 struct stoker_error *err);

#endif
