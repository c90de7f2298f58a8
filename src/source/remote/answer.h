/* answer.h - what a server answers, checked as it comes in
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_ANSWER_H
#define ST_SOURCE_REMOTE_ANSWER_H

#include "source/remote/http.h"

#include <stddef.h>

struct st_answer {
    const struct st_http_version *known; /* NULL: the first request, until it has learned that */
    struct st_http_version own;
    uint64_t from, wanted;
    const struct st_http_part *parts; /* of `wanted` bytes together */
    uint64_t got;
    uint32_t part; /* that is being filled */
    uint64_t part_got;
    /* From the headers of the latest response: */
    bool has_range, has_total, checked;
    uint64_t first, last, total;
    char tag[256], modified[64];
    char region[64];   /* of an S3 bucket */
    const char *wrong; /* what the server did that it may not */
    bool changed;
    bool whole; /* the server knows no ranges, and sends all there is */
    bool has_length;
    uint64_t length; /* of the body, as the headers have it */
    char reason[64]; /* the name that S3 has for an error */
};

/* One line of the headers, with or without its end. */
void st_answer_header(struct st_answer *answer, const char *data, size_t size);
/* A part of the body; false: it is not what was asked for, and no more of it is wanted. */
bool st_answer_body(struct st_answer *answer, long status, const void *data, size_t size);
/* The ETag, else Last-Modified. */
const char *st_answer_tag(const struct st_answer *answer);
/* Whether the body is a range. Some servers of S3's kind say 200 where they mean 206. */
bool st_answer_is_part(const struct st_answer *answer, long status);

#endif
