/* remote.c - objects on servers, read from http://, https:// and s3:// URLs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/remote_inside.h"
#include "source/checksum/crc32c.h"
#include "source/remote/url.h"

#include "base/mem.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* If a server does not support ranges, objects up to this size are loaded into memory. */
#define WHOLE_MAX   (64u << 20)
#define BUDGET_MS   60000u
#define CACHE_BYTES (64ull << 30)

static bool begins_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

bool st_remote_is_url(const char *path)
{
    return begins_with(path, "http://") || begins_with(path, "https://") || begins_with(path, "s3://");
}

/* ---- the store --------------------------------------------------------------------------------- */

int st_remote_store_open(struct st_remote_store **out, const struct stoker_dataset_options *opt,
                         struct stoker_error *err)
{
    struct st_remote_store *store = st_calloc(1, sizeof *store);
    if (!store)
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    atomic_init(&store->holders, 1);
    int rc = st_http_open(&store->http, opt && opt->remote_ms ? opt->remote_ms : BUDGET_MS,
                          opt ? opt->connections : 0, err);
    store->s3_failed = st_s3_load(&store->s3, &store->s3_why);
    if (!rc && opt && opt->cache_dir)
        rc = st_cache_open(&store->cache, opt->cache_dir,
                           opt->cache_bytes ? opt->cache_bytes : CACHE_BYTES, err);
    if (rc)
        st_remote_store_drop(store);
    else
        *out = store;
    return rc;
}

void st_remote_store_drop(struct st_remote_store *store)
{
    if (!store || atomic_fetch_sub(&store->holders, 1) != 1)
        return;
    st_http_close(store->http);
    st_cache_close(store->cache);
    free(store);
}

const char *st_remote_store_note(const struct st_remote_store *store)
{
    return store->cache ? st_cache_note(store->cache) : NULL;
}

/* ---- an object --------------------------------------------------------------------------------- */

int st_remote_aim(struct st_remote *object, struct st_remote_store *store, const char *url,
                  struct stoker_error *err)
{
    char name[PATH_MAX];
    struct st_http_target *target = &object->target;
    object->store = store;
    if (strlen(st_url_public(url, name)) >= sizeof name - 1)
        return st_fail(err, STOKER_EINVAL, "%.300s...: URL too long", name);
    target->name = strdup(name);
    if (!target->name)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a URL");
    if (begins_with(url, "s3://") && store->s3_failed)
        return st_fail(err, store->s3_failed, "%s", store->s3_why.message);
    if (begins_with(url, "s3://"))
        return st_s3_aim(&store->s3, url, target, err);
    target->url = strdup(url);
    return target->url ? 0 : st_fail(err, STOKER_ENOMEM, "out of memory for a URL");
}

int st_remote_check_size(const struct st_remote *object, struct stoker_error *err)
{
    return object->version.size <= INT64_MAX
               ? 0
               : st_fail(err, STOKER_EIO, "%s: the server states an impossible size",
                         object->target.name);
}

/* Requests the object's first bytes, up to `room`, and its version. *whole: not 0 if the server does not
 * support ranges and the object, of that size, does not fit into `room`. */
static int read_first(struct st_remote *object, uint8_t *into, uint64_t room, const atomic_bool *cancel,
                      uint64_t *got, uint64_t *whole, struct stoker_error *err)
{
    const struct st_http_part part = {into, room};
    struct st_http_call call = {
        .target = &object->target, .parts = &part, .part_count = 1, .cancel = cancel};
    const int rc = st_http_wait(object->store->http, &call, err);
    *whole = rc ? call.whole : 0;
    *got = call.got;
    object->version = call.learned;
    return rc ? rc : st_remote_check_size(object, err);
}

/* From a server that does not support ranges: loads the object into memory, if it is small. */
static int read_into_memory(struct st_remote *object, uint64_t size, const atomic_bool *cancel,
                            struct stoker_error *err)
{
    uint64_t got, whole;
    if (size > WHOLE_MAX)
        return st_fail(
            err, STOKER_EUNSUPPORTED,
            "%s: the server does not support range requests, and the object's %llu bytes are too many "
            "to load into memory (limit: 64 MiB); download it first",
            object->target.name, (unsigned long long)size);
    object->whole = st_alloc_aligned(size);
    if (!object->whole)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", object->target.name);
    const int rc = read_first(object, object->whole, size, cancel, &got, &whole, err);
    if (!rc && got < object->version.size)
        return st_fail(err, STOKER_EIO, "%s: the object changed on the server while it was read",
                       object->target.name);
    return rc;
}

int st_remote_ask_first(struct st_remote *object, const atomic_bool *cancel, struct stoker_error *err)
{
    uint64_t whole;
    const int rc =
        read_first(object, object->first, ST_REMOTE_FIRST, cancel, &object->first_size, &whole, err);
    return rc && whole ? read_into_memory(object, whole, cancel, err) : rc;
}

int st_remote_open(struct st_remote **out, struct st_remote_store *store, const char *url,
                   struct stoker_error *err)
{
    struct st_remote *object = st_calloc(1, sizeof *object);
    if (!object)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a URL");
    atomic_fetch_add(&store->holders, 1);
    int rc = st_remote_aim(object, store, url, err);
    if (!rc)
        rc = st_remote_ask_first(object, NULL, err);
    if (rc) {
        st_remote_close(object);
        return rc;
    }
    if (store->cache && object->version.tag[0]) /* otherwise a change would go unnoticed */
        object->cached =
            st_cached_open(store->cache, object->target.name, object->version.tag, object->version.size);
    *out = object;
    return 0;
}

void st_remote_forget(struct st_remote *object)
{
    st_cached_close(object->cached);
    free(object->target.url);
    free(object->target.name);
    free(object->whole);
    free(object);
}

void st_remote_close(struct st_remote *object)
{
    if (!object)
        return;
    struct st_remote_store *store = object->store;
    st_remote_forget(object);
    st_remote_store_drop(store);
}

const char *st_remote_name(const struct st_remote *object) { return object->target.name; }

uint64_t st_remote_size(const struct st_remote *object) { return object->version.size; }

bool st_remote_version(const struct st_remote *object, uint32_t *sum, int64_t *modified_ns)
{
    *sum = st_crc32c(object->version.tag, strlen(object->version.tag));
    *modified_ns = object->version.modified_ns;
    return object->version.tag[0] != '\0';
}

/* ---- reading ----------------------------------------------------------------------------------- */

static int read_server(struct st_remote *object, uint64_t offset, uint8_t *into, uint64_t size,
                       const atomic_bool *cancel, struct stoker_error *err)
{
    int rc = 0;
    while (size && !rc) {
        const uint64_t part = size < ST_REMOTE_AT_ONCE ? size : ST_REMOTE_AT_ONCE;
        const struct st_http_part place = {into, part};
        struct st_http_call call = {.target = &object->target,
                                    .version = &object->version,
                                    .offset = offset,
                                    .parts = &place,
                                    .part_count = 1,
                                    .cancel = cancel};
        rc = st_http_wait(object->store->http, &call, err);
        offset += part;
        into += part;
        size -= part;
    }
    return rc;
}

/* Reads a part of a block; fetches the whole block into the cache if there is room. */
static int fetch_block(struct st_remote *object, uint64_t block, uint32_t from, uint32_t size,
                       uint8_t *into, const atomic_bool *cancel, struct stoker_error *err)
{
    const uint64_t start = block * ST_CACHE_BLOCK, left = object->version.size - start;
    const uint32_t whole = left < ST_CACHE_BLOCK ? (uint32_t)left : ST_CACHE_BLOCK;
    if (!st_cached_reserve(object->cached, whole))
        return read_server(object, start + from, into, size, cancel, err);
    uint8_t *bytes = st_alloc_aligned(whole);
    const int rc = bytes ? read_server(object, start, bytes, whole, cancel, err)
                         : st_fail(err, STOKER_ENOMEM, "%s: out of memory", object->target.name);
    st_cached_put(object->cached, block, rc ? NULL : bytes, whole);
    if (!rc)
        memcpy(into, bytes + from, size);
    free(bytes);
    return rc;
}

static int read_block(struct st_remote *object, uint64_t block, uint32_t from, uint32_t size,
                      uint8_t *into, const atomic_bool *cancel, struct stoker_error *err)
{
    struct st_cached *cached = object->cached;
    if (st_cached_get(cached, block, from, size, into))
        return 0;
    const bool begun = st_cached_begin(cached, block, cancel);
    int rc = 0;
    if (!st_cached_get(cached, block, from, size, into)) /* not fetched in the meantime */
        rc = begun ? fetch_block(object, block, from, size, into, cancel, err)
                   : read_server(object, block * ST_CACHE_BLOCK + from, into, size, cancel, err);
    if (begun)
        st_cached_end(cached, block);
    return rc;
}

static bool has_range(const struct st_remote *object, uint64_t offset, uint64_t size)
{
    return offset <= object->version.size && size <= object->version.size - offset;
}

bool st_remote_sends(const struct st_remote *object, uint64_t offset, uint64_t size)
{
    return !object->cached && !object->whole && size && size <= ST_REMOTE_AT_ONCE &&
           has_range(object, offset, size);
}

int st_remote_send(struct st_remote *object, struct st_http_call *call, struct stoker_error *err)
{
    call->target = &object->target;
    call->version = &object->version;
    return st_http_start(object->store->http, call, err);
}

int st_remote_read(struct st_remote *object, uint64_t offset, void *into, uint64_t size,
                   const atomic_bool *cancel, struct stoker_error *err)
{
    uint8_t *at = into;
    if (!has_range(object, offset, size))
        return st_fail(err, STOKER_EIO,
                       "%s: ends at byte %llu, but %llu bytes were expected at byte %llu",
                       object->target.name, (unsigned long long)object->version.size,
                       (unsigned long long)size, (unsigned long long)offset);
    if (!size)
        return 0;
    if (size <= object->first_size && offset <= object->first_size - size) {
        memcpy(into, object->first + offset, size);
        return 0;
    }
    if (object->whole) {
        memcpy(into, object->whole + offset, size);
        return 0;
    }
    if (!object->cached)
        return read_server(object, offset, at, size, cancel, err);
    int rc = 0;
    while (size && !rc) {
        const uint32_t from = (uint32_t)(offset % ST_CACHE_BLOCK), room = ST_CACHE_BLOCK - from;
        const uint32_t part = size < room ? (uint32_t)size : room;
        rc = read_block(object, offset / ST_CACHE_BLOCK, from, part, at, cancel, err);
        offset += part;
        at += part;
        size -= part;
    }
    return rc;
}
