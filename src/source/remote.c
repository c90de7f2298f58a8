/* remote.c - objects on servers, by http://, https:// and s3:// URLs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote.h"
#include "source/crc32c.h"
#include "source/remote_cache.h"
#include "source/remote_http.h"
#include "source/remote_s3.h"

#include "base/mem.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The most that is asked for at once; the budget of time is for so much. */
#define REQUEST_MAX (8u << 20)
#define FIRST_BYTES 4096u
#define BUDGET_MS   60000u
#define CACHE_BYTES (64ull << 30)

struct st_remote_store {
    atomic_uint holders;
    struct st_http *http;
    struct st_cache *cache; /* NULL: none */
    struct st_s3 s3;
};

struct st_remote {
    struct st_remote_store *store;
    struct st_http_target target;
    struct st_http_version version;
    struct st_cached *cached; /* NULL: not in the cache */
    uint64_t first_size;
    uint8_t first[FIRST_BYTES]; /* came with the object's size */
};

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
    int rc = st_http_open(&store->http, opt && opt->remote_ms ? opt->remote_ms : BUDGET_MS, err);
    if (!rc)
        rc = st_s3_load(&store->s3, err);
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

/* The URL without "name:password@" and "?query". */
static char *public_name(const char *url)
{
    const char *host = strstr(url, "://") + 3;
    const size_t host_size = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', host_size), *rest = at ? at + 1 : host;
    const size_t front = (size_t)(host - url);
    const size_t size = begins_with(url, "s3:") ? strlen(rest) : strcspn(rest, "?#");
    char *out = st_calloc(front + size + 1, 1);
    if (out) {
        memcpy(out, url, front);
        memcpy(out + front, rest, size);
    }
    return out;
}

static int aim(struct st_remote *object, const char *url, struct stoker_error *err)
{
    const struct st_s3 *s3 = &object->store->s3;
    struct st_http_target *target = &object->target;
    target->s3 = begins_with(url, "s3://");
    target->name = public_name(url);
    target->url = !target->name ? NULL : target->s3 ? st_s3_url(s3, url, err) : strdup(url);
    if (!target->name || (!target->url && !target->s3))
        return st_fail(err, STOKER_ENOMEM, "out of memory for a URL");
    if (!target->url)
        return STOKER_EINVAL;
    if (target->s3 && s3->key[0]) {
        target->sign = s3->sign;
        target->login = s3->login;
        target->token = s3->token_header[0] ? s3->token_header : NULL;
    }
    return 0;
}

int st_remote_open(struct st_remote **out, struct st_remote_store *store, const char *url,
                   struct stoker_error *err)
{
    struct st_remote *object = st_calloc(1, sizeof *object);
    if (!object)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a URL");
    atomic_fetch_add(&store->holders, 1);
    object->store = store;
    int rc = aim(object, url, err);
    if (!rc)
        rc = st_http_first(store->http, &object->target, object->first, FIRST_BYTES, &object->first_size,
                           &object->version, err);
    if (!rc && object->version.size > INT64_MAX)
        rc =
            st_fail(err, STOKER_EIO, "%s: the server states a size that cannot be", object->target.name);
    if (rc) {
        st_remote_close(object);
        return rc;
    }
    if (store->cache && object->version.tag[0]) /* else it could change and nobody would know */
        object->cached =
            st_cached_open(store->cache, object->target.name, object->version.tag, object->version.size);
    *out = object;
    return 0;
}

void st_remote_close(struct st_remote *object)
{
    if (!object)
        return;
    st_cached_close(object->cached);
    free(object->target.url);
    free(object->target.name);
    st_remote_store_drop(object->store);
    free(object);
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
                       struct stoker_error *err)
{
    int rc = 0;
    while (size && !rc) {
        const uint64_t part = size < REQUEST_MAX ? size : REQUEST_MAX;
        rc = st_http_read(object->store->http, &object->target, &object->version, offset, into, part,
                          err);
        offset += part;
        into += part;
        size -= part;
    }
    return rc;
}

/* A part of a block: fetches the whole block into the cache if there is room in it. */
static int fetch_block(struct st_remote *object, uint64_t block, uint32_t from, uint32_t size,
                       uint8_t *into, struct stoker_error *err)
{
    const uint64_t start = block * ST_CACHE_BLOCK, left = object->version.size - start;
    const uint32_t whole = left < ST_CACHE_BLOCK ? (uint32_t)left : ST_CACHE_BLOCK;
    if (!st_cached_reserve(object->cached, whole))
        return read_server(object, start + from, into, size, err);
    uint8_t *bytes = st_alloc_aligned(whole);
    const int rc = bytes ? read_server(object, start, bytes, whole, err)
                         : st_fail(err, STOKER_ENOMEM, "%s: out of memory", object->target.name);
    st_cached_put(object->cached, block, rc ? NULL : bytes, whole);
    if (!rc)
        memcpy(into, bytes + from, size);
    free(bytes);
    return rc;
}

static int read_block(struct st_remote *object, uint64_t block, uint32_t from, uint32_t size,
                      uint8_t *into, struct stoker_error *err)
{
    struct st_cached *cached = object->cached;
    if (st_cached_get(cached, block, from, size, into))
        return 0;
    const bool begun = st_cached_begin(cached, block);
    int rc = 0;
    if (!st_cached_get(cached, block, from, size, into)) /* nobody has fetched it meanwhile */
        rc = begun ? fetch_block(object, block, from, size, into, err)
                   : read_server(object, block * ST_CACHE_BLOCK + from, into, size, err);
    if (begun)
        st_cached_end(cached, block);
    return rc;
}

int st_remote_read(struct st_remote *object, uint64_t offset, void *into, uint64_t size,
                   struct stoker_error *err)
{
    uint8_t *at = into;
    if (offset > object->version.size || size > object->version.size - offset)
        return st_fail(err, STOKER_EIO, "%s: ends at byte %llu, before the %llu bytes expected at %llu",
                       object->target.name, (unsigned long long)object->version.size,
                       (unsigned long long)size, (unsigned long long)offset);
    if (size <= object->first_size && offset <= object->first_size - size) {
        memcpy(into, object->first + offset, size);
        return 0;
    }
    if (!object->cached)
        return read_server(object, offset, at, size, err);
    int rc = 0;
    while (size && !rc) {
        const uint32_t from = (uint32_t)(offset % ST_CACHE_BLOCK), room = ST_CACHE_BLOCK - from;
        const uint32_t part = size < room ? (uint32_t)size : room;
        rc = read_block(object, offset / ST_CACHE_BLOCK, from, part, at, err);
        offset += part;
        at += part;
        size -= part;
    }
    return rc;
}
