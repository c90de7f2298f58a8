/* set.c - many objects on servers, each read as a whole: those listed in a table
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/remote_inside.h"
#include "source/remote/waiter.h"

#include "base/interrupt.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define WHOLE_BYTES (256u << 10) /* size of the first request, until a larger object was seen */

/* An object's version when it was first read; kept only if there is a cache, to look it up. */
struct seen {
    uint64_t size;
    char tag[];
};

struct st_remote_set {
    struct st_remote_store *store;
    struct st_cached *group; /* NULL: no cache */
    uint64_t count;
    _Atomic(struct seen *) *seen; /* if there is a group */
};

int st_remote_set_open(struct st_remote_set **out, struct st_remote_store *store, const char *name,
                       uint64_t count, struct stoker_error *err)
{
    struct st_remote_set *set = st_calloc(1, sizeof *set);
    if (!set)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", name);
    set->store = store;
    set->count = count;
    atomic_fetch_add(&store->holders, 1);
    if (store->cache && (set->group = st_cached_open(store->cache, name, "its files", 0))) {
        set->seen = st_calloc(count, sizeof *set->seen);
        if (!set->seen) {
            st_remote_set_close(set);
            return st_fail(err, STOKER_ENOMEM, "%s: out of memory", name);
        }
    }
    *out = set;
    return 0;
}

void st_remote_set_close(struct st_remote_set *set)
{
    if (!set)
        return;
    for (uint64_t i = 0; set->seen && i < set->count; i++)
        free(atomic_load_explicit(&set->seen[i], memory_order_relaxed));
    free(set->seen);
    st_cached_close(set->group);
    st_remote_store_drop(set->store);
    free(set);
}

static void remember(struct st_remote_set *set, uint64_t number, const struct st_http_version *version)
{
    struct seen *none = NULL, *seen = st_calloc(1, sizeof *seen + strlen(version->tag) + 1);
    if (!seen)
        return; /* it will be requested again */
    seen->size = version->size;
    strcpy(seen->tag, version->tag);
    if (!atomic_compare_exchange_strong(&set->seen[number], &none, seen))
        free(seen);
}

static int make_room(const struct st_remote *object, struct st_buffer *into, uint64_t limit,
                     struct stoker_error *err)
{
    const uint64_t size = object->version.size;
    if (size > limit)
        return st_fail(err, STOKER_ELIMIT,
                       "%s: its size of %llu bytes exceeds the limit of %llu for a sample",
                       object->target.name, (unsigned long long)size, (unsigned long long)limit);
    if (!st_buffer_reserve(into, size))
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory for %llu bytes", object->target.name,
                       (unsigned long long)size);
    into->size = size;
    return 0;
}

/* ---- from the cache -------------------------------------------------------------------------- */

/* Uses the version known from the first read, or requests it now. */
static int read_cached(struct st_remote_set *set, uint64_t number, struct st_remote *object,
                     uint64_t limit, const atomic_bool *cancel, struct st_buffer *into,
                     struct stoker_error *err)
{
    struct st_http_version *version = &object->version;
    const struct seen *seen = atomic_load(&set->seen[number]);
    int rc = 0;
    if (seen) {
        version->size = seen->size;
        strcpy(version->tag, seen->tag);
    } else {
        rc = st_remote_ask_first(object, cancel, err);
        if (!rc && version->tag[0])
            remember(set, number, version);
    }
    if (!rc && version->tag[0] && !object->whole)
        object->cached = st_cached_member(set->group, object->target.name, version->tag, version->size);
    if (!rc)
        rc = make_room(object, into, limit, err);
    return rc ? rc : st_remote_read(object, 0, into->data, into->size, cancel, err);
}

/* ---- from the server --------------------------------------------------------------------------- */

/* One object being fetched. The buffer is as large as the largest object that it held, so one request is
 * enough for most objects: it gets the first bytes and the version. Larger objects take further
 * requests, one after another. */
struct fetching {
    struct st_http_call call; /* must be first */
    struct st_http_part part;
    struct st_remote *object;
    struct st_remote_fetch *fetch;
    uint64_t got;
    bool enlarged; /* no support for ranges: the buffer now has room for the whole object */
};

static void request_done(struct st_http_call *call, int code, const struct stoker_error *err);

/* Requests the first bytes or, with a version, the bytes after those received. */
static int request_bytes(struct fetching *fetching, const struct st_http_version *version, uint64_t size,
               struct stoker_error *err)
{
    const struct st_remote_fetch *fetch = fetching->fetch;
    fetching->part = (struct st_http_part){fetch->into->data + fetching->got, size};
    fetching->call = (struct st_http_call){.target = &fetching->object->target,
                                           .version = version,
                                           .offset = fetching->got,
                                           .parts = &fetching->part,
                                           .part_count = 1,
                                           .cancel = fetch->cancel,
                                           .interrupted = fetch->interrupted,
                                           .done = request_done};
    return st_http_start(fetching->object->store->http, &fetching->call, err);
}

static uint64_t at_once(uint64_t size) { return size < ST_REMOTE_AT_ONCE ? size : ST_REMOTE_AT_ONCE; }

/* The first bytes have arrived: makes room for the others. */
static int learn(struct fetching *fetching, struct stoker_error *err)
{
    const struct st_http_call *call = &fetching->call;
    struct st_buffer *into = fetching->fetch->into,
                     more = {.account = into->account, .limit = into->limit};
    struct st_remote *object = fetching->object;
    object->version = call->learned;
    fetching->got = call->got;
    int rc = st_remote_check_size(object, err);
    if (!rc && object->version.size > into->capacity) {
        rc = make_room(object, &more, fetching->fetch->limit, err);
        if (!rc) {
            memcpy(more.data, into->data, fetching->got);
            st_buffer_free(into);
            *into = more;
        } else {
            into->refused = more.refused;
        }
    }
    into->size = rc ? 0 : object->version.size;
    return rc;
}

/* Records what arrived and requests more. True: everything is there, or *rc says what failed. */
static bool proceed(struct fetching *fetching, int *rc, struct stoker_error *err)
{
    const struct st_http_call *call = &fetching->call;
    struct st_buffer *into = fetching->fetch->into;
    if (*rc && call->whole &&
        !fetching->enlarged) { /* no support for ranges: retry with room for all of it */
        fetching->enlarged = true;
        fetching->object->version.size = call->whole;
        *rc = make_room(fetching->object, into, fetching->fetch->limit, err);
        if (!*rc)
            *rc = request_bytes(fetching, NULL, into->capacity, err);
        return *rc;
    }
    if (*rc)
        return true;
    if (call->version)
        fetching->got += fetching->part.size;
    else
        *rc = learn(fetching, err);
    if (*rc || fetching->got >= into->size)
        return true;
    *rc = request_bytes(fetching, &fetching->object->version, at_once(into->size - fetching->got), err);
    return *rc;
}

static void request_done(struct st_http_call *call, int code, const struct stoker_error *err)
{
    struct fetching *fetching = (struct fetching *)call;
    struct st_remote_fetch *fetch = fetching->fetch;
    struct stoker_error own = {0};
    if (code)
        own = *err;
    if (!proceed(fetching, &code, &own))
        return;
    if (code)
        fetch->into->size = 0;
    st_remote_forget(fetching->object);
    free(fetching);
    fetch->done(fetch, code, &own);
}

bool st_remote_set_sends(const struct st_remote_set *set) { return !set->group; }

int st_remote_set_send(struct st_remote_set *set, const char *url, struct st_remote_fetch *fetch,
                       struct stoker_error *err)
{
    struct fetching *fetching = st_calloc(1, sizeof *fetching);
    struct st_remote *object = st_calloc(1, sizeof *object);
    int rc = fetching && object ? st_remote_aim(object, set->store, url, err)
                                : st_fail(err, STOKER_ENOMEM, "out of memory for a URL");
    const uint64_t limit = fetch->into->limit / 2;
    if (!rc && !st_buffer_reserve(fetch->into, limit && limit < WHOLE_BYTES ? limit : WHOLE_BYTES))
        rc = st_fail(err, STOKER_ENOMEM, "%s: out of memory", object->target.name);
    if (!rc) {
        fetching->object = object;
        fetching->fetch = fetch;
        rc = request_bytes(fetching, NULL, at_once(fetch->into->capacity), err);
    }
    if (rc) {
        if (object)
            st_remote_forget(object);
        free(fetching);
        fetch->into->size = 0;
    }
    return rc;
}

/* ---- waiting for it --------------------------------------------------------------------------- */

struct awaited {
    struct st_remote_fetch fetch; /* must be first */
    struct st_waiter waiter;
};

static void wake(struct st_remote_fetch *fetch, int code, const struct stoker_error *err)
{
    st_waiter_wake(&((struct awaited *)fetch)->waiter, code, err);
}

static int read_new(struct st_remote_set *set, const char *url, uint64_t limit,
                    const atomic_bool *cancel, struct st_buffer *into, struct stoker_error *err)
{
    struct awaited awaited = {.fetch = {.into = into, .limit = limit, .cancel = cancel, .done = wake}};
    if (st_was_interrupted())
        return st_fail(err, STOKER_ECANCELED, "reading was interrupted");
    st_waiter_init(&awaited.waiter, err);
    awaited.fetch.interrupted = &awaited.waiter.interrupted;
    int rc = st_remote_set_send(set, url, &awaited.fetch, err);
    if (!rc)
        rc = st_waiter_wait(&awaited.waiter);
    st_waiter_free(&awaited.waiter);
    return rc;
}

int st_remote_set_read(struct st_remote_set *set, uint64_t number, const char *url, uint64_t limit,
                       const atomic_bool *cancel, struct st_buffer *into, struct stoker_error *err)
{
    if (!set->group)
        return read_new(set, url, limit, cancel, into, err);
    struct st_remote *object = st_calloc(1, sizeof *object);
    if (!object)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a URL");
    int rc = st_remote_aim(object, set->store, url, err);
    if (!rc)
        rc = read_cached(set, number, object, limit, cancel, into, err);
    if (rc)
        into->size = 0;
    st_remote_forget(object);
    return rc;
}
