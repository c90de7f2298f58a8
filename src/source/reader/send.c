/* send.c - fetches samples from servers: many requests in flight, and one for adjacent samples
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/reader/ring.h"
#include "source/remote/http.h"
#include "source/remote/remote.h"

#include <stdlib.h>

enum { JOINED = 16 };
/* The most bytes that are joined into one request, and the largest gap between two of its samples. */
#define JOINED_BYTES (1u << 20)
#define GAP_BYTES    (64u << 10)

/* One request, and the berths that it fills. */
struct joined_request {
    struct st_http_call call; /* must be first */
    struct st_reader *reader;
    struct st_remote *object;
    uint64_t end; /* of the requested range */
    uint32_t count, put;
    struct st_berth *berths[JOINED];
    struct st_http_part parts[2 * JOINED]; /* including the gaps between them */
    uint32_t owner[2 * JOINED];            /* the berth of part i, or JOINED for a gap */
};

static void deliver(struct joined_request *request, int code, const struct stoker_error *err)
{
    struct st_berth *berth = request->berths[request->put++];
    if (code)
        berth->err = *err;
    berth->bytes = (struct st_bytes){berth->buffer.data, berth->buffer.size};
    st_ring_put(request->reader, berth, code);
}

/* All but the last are delivered as they arrive, in order; as long as one is left, the reader stays
 * open. */
static void part_arrived(struct st_http_call *call, uint32_t part)
{
    struct joined_request *request = (struct joined_request *)call;
    if (request->owner[part] != JOINED && request->put + 1 < request->count)
        deliver(request, 0, NULL);
}

static void all_arrived(struct st_http_call *call, int code, const struct stoker_error *err)
{
    struct joined_request *request = (struct joined_request *)call;
    while (request->put < request->count)
        deliver(request, code, err);
    free(request);
}

static void add_part(struct joined_request *request, uint8_t *into, uint64_t size, uint32_t owner)
{
    request->owner[request->call.part_count] = owner;
    request->parts[request->call.part_count++] = (struct st_http_part){into, size};
    request->end += size;
}

/* Adds the berth to the request, if its sample begins at or near the end of the range. */
static bool add_berth(struct joined_request *request, struct st_berth *berth,
                      const struct st_extent *extent)
{
    const uint64_t begin = request->call.offset, gap = extent->offset - request->end;
    if (request->count && (extent->remote != request->object || extent->offset < request->end ||
                            gap > GAP_BYTES || extent->offset + extent->length - begin > JOINED_BYTES))
        return false;
    if (!st_buffer_reserve(&berth->buffer, extent->length))
        return false;
    if (!request->count)
        request->call.offset = request->end = extent->offset;
    else if (gap)
        add_part(request, NULL, gap, JOINED);
    berth->slept = true;
    berth->buffer.size = extent->length;
    add_part(request, berth->buffer.data, extent->length, request->count);
    request->berths[request->count++] = berth;
    return true;
}

/* Finds where the berth's sample is; false if it is in memory or unknown. */
static bool locate(struct st_reader *reader, struct st_berth *berth, struct st_extent *extent)
{
    return !st_locate(reader->data, st_ring_sample(reader, berth), extent, NULL) && !extent->memory;
}

/* Whether it can be read by a range request. */
static bool is_range(const struct st_extent *extent)
{
    return !extent->objects && extent->remote && extent->length != ST_WHOLE_FILE &&
           st_remote_sends(extent->remote, extent->offset, extent->length);
}

/* Adds the berths of the following tickets as long as they fit; returns the first that does not. */
static struct st_berth *add_neighbours(struct joined_request *request, struct st_extent *extent)
{
    struct st_reader *reader = request->reader;
    while (request->count < JOINED) {
        pthread_mutex_lock(&reader->lock);
        struct st_berth *next = st_ring_take(reader);
        pthread_mutex_unlock(&reader->lock);
        if (!next)
            return NULL;
        if (!locate(reader, next, extent) || !is_range(extent) || !add_berth(request, next, extent))
            return next;
    }
    return NULL;
}

/* ---- whole objects ------------------------------------------------------------------------------ */

/* One berth and the object that fills it. */
struct object_request {
    struct st_remote_fetch fetch; /* must be first */
    struct st_reader *reader;
    struct st_berth *berth;
};

static void object_arrived(struct st_remote_fetch *fetch, int code, const struct stoker_error *err)
{
    struct object_request *request = (struct object_request *)fetch;
    struct st_reader *reader = request->reader;
    struct st_berth *berth = request->berth;
    free(request);
    if (code)
        berth->err = *err;
    berth->bytes = (struct st_bytes){berth->buffer.data, berth->buffer.size};
    st_ring_put(reader, berth, code);
}

static bool send_object(struct st_reader *reader, struct st_berth *berth, const struct st_extent *extent)
{
    struct stoker_error err;
    struct object_request *request = st_calloc(1, sizeof *request);
    if (!request)
        return false;
    *request = (struct object_request){.fetch = {.into = &berth->buffer,
                                        .limit = ST_SAMPLE_MAX,
                                        .cancel = &reader->cancelled,
                                        .done = object_arrived},
                              .reader = reader,
                              .berth = berth};
    berth->slept = true;
    const int rc = st_remote_set_send(extent->objects, extent->path, &request->fetch, &err);
    if (rc)
        object_arrived(&request->fetch, rc, &err);
    return true;
}

/* ------------------------------------------------------------------------------------------------- */

bool st_ring_send(struct st_reader *reader, struct st_berth *berth, struct st_berth **left)
{
    struct st_extent extent;
    struct stoker_error err;
    *left = NULL;
    if (!locate(reader, berth, &extent))
        return false;
    if (extent.objects && st_remote_set_sends(extent.objects))
        return send_object(reader, berth, &extent);
    if (!is_range(&extent))
        return false;
    struct joined_request *request = st_calloc(1, sizeof *request);
    if (!request)
        return false;
    request->reader = reader;
    request->object = extent.remote;
    if (!add_berth(request, berth, &extent)) {
        free(request);
        return false;
    }
    *left = add_neighbours(request, &extent);
    request->call.parts = request->parts;
    request->call.cancel = &reader->cancelled;
    request->call.part = part_arrived;
    request->call.done = all_arrived;
    const int rc = st_remote_send(request->object, &request->call, &err);
    if (rc)
        all_arrived(&request->call, rc, &err);
    return true;
}
