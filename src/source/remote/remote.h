/* remote.h - objects on servers, by http://, https:// and s3:// URLs
 *
 * An object is read by ranges over a few connections that stay open, shared by all objects of a store.
 * It must stay what it was when it was opened: each answer's ETag (or Last-Modified) is compared.
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
struct st_remote_store; /* connections, credentials and the cache of one data set; counted */
struct st_remote;       /* one object */
struct st_remote_set;   /* many objects, each read as a whole */

/* An object that is on its way as a whole. It is the caller's, who keeps it, and all it points to, until `done`, which
 * another thread calls. */
struct st_remote_fetch {
    struct st_buffer *into;
    uint64_t limit;                          /* the largest object that is read */
    const atomic_bool *cancel, *interrupted; /* either ends it; NULL: never */
    void (*done)(struct st_remote_fetch *fetch, int code, const struct stoker_error *err);
};

bool st_remote_is_url(const char *path);

/* `opt` may be NULL. */
int st_remote_store_open(struct st_remote_store **out, const struct stoker_dataset_options *opt,
                         struct stoker_error *err);
void st_remote_store_drop(struct st_remote_store *store); /* NULL is fine */
/* What stats() should say of the store; NULL: nothing. */
const char *st_remote_store_note(const struct st_remote_store *store);

/* Asks for the object's size and first bytes. The object holds the store. */
int st_remote_open(struct st_remote **out, struct st_remote_store *store, const char *url,
                   struct stoker_error *err);
/* Exactly `size` bytes from `offset` on, out of the cache where they are there. Any thread, and after
 * fork. Where `cancel` (NULL: never) becomes true, STOKER_ECANCELED within a tenth of a second. */
int st_remote_read(struct st_remote *object, uint64_t offset, void *into, uint64_t size,
                   const atomic_bool *cancel, struct stoker_error *err);
/* Whether such a range is read by one request to the server: then st_remote_send begins it, and does not
 * wait. The call's target and version are set; the rest is the caller's (http.h). */
bool st_remote_sends(const struct st_remote *object, uint64_t offset, uint64_t size);
int st_remote_send(struct st_remote *object, struct st_http_call *call, struct stoker_error *err);
void st_remote_close(struct st_remote *object); /* NULL is fine */

/* The URL without what may be secret: name, password and query. */
const char *st_remote_name(const struct st_remote *object);
uint64_t st_remote_size(const struct st_remote *object);
/* What tells one version of the object from another: a sum of its ETag or Last-Modified, and when it was
 * last modified (0: the server does not say). False: the server says nothing of the kind. */
bool st_remote_version(const struct st_remote *object, uint32_t *sum, int64_t *modified_ns);

/* Objects by number, of which none is asked for before it is read: those that a table names. `name` is
 * the table's. */
int st_remote_set_open(struct st_remote_set **out, struct st_remote_store *store, const char *name,
                       uint64_t count, struct stoker_error *err);
/* The whole of an object: by one request where it is small and there is no cache. One that was read
 * before, and is in the cache, is not asked for again. Any thread, and after fork. */
int st_remote_set_read(struct st_remote_set *set, uint64_t number, const char *url, uint64_t limit,
                       const atomic_bool *cancel, struct st_buffer *into, struct stoker_error *err);
/* Whether an object is read by requests to the server alone: then st_remote_set_send begins to read one, and does not
 * wait. On failure `done` is not called. */
bool st_remote_set_sends(const struct st_remote_set *set);
int st_remote_set_send(struct st_remote_set *set, const char *url, struct st_remote_fetch *fetch,
                       struct stoker_error *err);
void st_remote_set_close(struct st_remote_set *set); /* NULL is fine */

#endif
