/* remote_inside.h - internals of remote objects: remote/remote.c, remote/set.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_REMOTE_INSIDE_H
#define ST_SOURCE_REMOTE_REMOTE_INSIDE_H

#include "source/remote/cache.h"
#include "source/remote/http.h"
#include "source/remote/remote.h"
#include "source/remote/s3.h"

/* The largest range per request; the time limit applies to this much. */
#define ST_REMOTE_AT_ONCE (8u << 20)
#define ST_REMOTE_FIRST   4096u

struct st_remote_store {
    atomic_uint holders;
    struct st_http *http;
    struct st_cache *cache; /* NULL: none */
    struct st_s3 s3;
    int s3_failed; /* 0, or the error reported when S3 is used */
    struct stoker_error s3_why;
};

struct st_remote {
    struct st_remote_store *store;
    struct st_http_target target;
    struct st_http_version version;
    struct st_cached *cached; /* NULL: not cached */
    uint64_t first_size;
    uint8_t first[ST_REMOTE_FIRST]; /* received together with the object's size */
    uint8_t *whole; /* all of it, if the server does not support ranges; NULL: it is read by ranges */
};

/* Sets the object's URL without a request; takes no reference to the store. */
int st_remote_aim(struct st_remote *object, struct st_remote_store *store, const char *url,
                  struct stoker_error *err);
/* Requests its size and first bytes. */
int st_remote_ask_first(struct st_remote *object, const atomic_bool *cancel, struct stoker_error *err);
/* STOKER_EIO: the server states an impossible size. */
int st_remote_check_size(const struct st_remote *object, struct stoker_error *err);
void st_remote_forget(struct st_remote *object); /* frees it */

#endif
