/* remote.h - objects on servers, read from http://, https:// and s3:// URLs
 *
 * An object is read by range requests over a few persistent connections, shared by all objects of a
 * store. It must not change while it is open: each response's ETag (or Last-Modified) is compared.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_REMOTE_H
#define ST_SOURCE_REMOTE_REMOTE_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct st_buffer;
struct st_http_call;
struct st_remote_store; /* connections, credentials and cache of one dataset; reference-counted */
struct st_remote;       /* one object */
struct st_remote_set;   /* many objects, each read as a whole */

/* A fetch of a whole object. The caller owns it and keeps it, with everything it points to, until
 * `done`, which another thread calls. */
struct st_remote_fetch {
    struct st_buffer *into;
    uint64_t limit;                          /* larger objects are rejected */
    const atomic_bool *cancel, *interrupted; /* either one cancels it; NULL: never */
    void (*done)(struct st_remote_fetch *fetch, int code, const struct stoker_error *err);
};

bool st_remote_is_url(const char *path);

/* `opt` may be NULL. */
int st_remote_store_open(struct st_remote_store **out, const struct stoker_dataset_options *opt,
                         struct stoker_error *err);
void st_remote_store_drop(struct st_remote_store *store); /* NULL is allowed */
/* A remark about the store for stats(); NULL: none. */
const char *st_remote_store_note(const struct st_remote_store *store);

/* Requests the object's size and first bytes. The object keeps a reference to the store. */
int st_remote_open(struct st_remote **out, struct st_remote_store *store, const char *url,
                   struct stoker_error *err);
/* Reads exactly `size` bytes at `offset`, from the cache if they are cached. Any thread, and after fork.
 * If `cancel` (NULL: never) becomes true, fails with STOKER_ECANCELED within a tenth of a second. */
int st_remote_read(struct st_remote *object, uint64_t offset, void *into, uint64_t size,
                   const atomic_bool *cancel, struct stoker_error *err);
/* Whether this range is read by a single request to the server: then st_remote_send starts it without
 * waiting. It sets the call's target and version; the caller sets the rest (http.h). */
bool st_remote_sends(const struct st_remote *object, uint64_t offset, uint64_t size);
int st_remote_send(struct st_remote *object, struct st_http_call *call, struct stoker_error *err);
void st_remote_close(struct st_remote *object); /* NULL is allowed */

/* The URL without parts that may be secret: user name, password and query. */
const char *st_remote_name(const struct st_remote *object);
uint64_t st_remote_size(const struct st_remote *object);
/* Identifies the version of the object: a checksum of its ETag or Last-Modified, and its modification
 * time (0: not reported). False: the server sends neither. */
bool st_remote_version(const struct st_remote *object, uint32_t *sum, int64_t *modified_ns);

/* Objects by number, none of which is requested before it is read: those listed in a table. `name` is
 * the table's. */
int st_remote_set_open(struct st_remote_set **out, struct st_remote_store *store, const char *name,
                       uint64_t count, struct stoker_error *err);
/* Reads a whole object: with a single request if it is small and there is no cache. One that is already
 * cached is not requested again. Any thread, and after fork. */
int st_remote_set_read(struct st_remote_set *set, uint64_t number, const char *url, uint64_t limit,
                       const atomic_bool *cancel, struct st_buffer *into, struct stoker_error *err);
/* Whether objects are read by requests to the server only, without a cache: then st_remote_set_send
 * starts to read one without waiting. On failure `done` is not called. */
bool st_remote_set_sends(const struct st_remote_set *set);
int st_remote_set_send(struct st_remote_set *set, const char *url, struct st_remote_fetch *fetch,
                       struct stoker_error *err);
void st_remote_set_close(struct st_remote_set *set); /* NULL is allowed */

#endif
