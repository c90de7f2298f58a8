/* answer.h - parses and checks a server's response as it arrives
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_ANSWER_H
#define ST_SOURCE_REMOTE_ANSWER_H

#include "source/remote/http.h"

#include <stddef.h>

struct st_answer {
    const struct st_http_version *known; /* NULL: the first request, until it has found out */
    struct st_http_version own;
    uint64_t from, wanted;
    const struct st_http_part *parts; /* of `wanted` bytes together */
    uint64_t got;
    uint32_t part; /* the one being filled */
    uint64_t part_got;
    /* From the headers of the latest response: */
    bool has_range, has_total, checked;
    uint64_t first, last, total;
    char tag[256], modified[64];
    char region[64];   /* of the S3 bucket */
    const char *wrong; /* NULL, or how the server violated the protocol */
    bool changed;
    bool whole; /* the server does not support ranges and sends the whole object */
    bool has_length;
    uint64_t length; /* of the body, according to the headers */
    char reason[64]; /* S3's error code */
};

/* Takes one header line, with or without its line end. */
void st_answer_header(struct st_answer *answer, const char *data, size_t size);
/* Takes a part of the body; false: it is not what was requested, and the transfer should stop. */
bool st_answer_body(struct st_answer *answer, long status, const void *data, size_t size);
/* The ETag, or Last-Modified if there is none. */
const char *st_answer_tag(const struct st_answer *answer);
/* Whether the body is a range. Some S3-compatible servers return 200 where they mean 206. */
bool st_answer_is_part(const struct st_answer *answer, long status);

#endif
