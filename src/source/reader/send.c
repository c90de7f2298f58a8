/* send.c - samples on servers: many requests under way at once, and one for samples that lie side by
 * side
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/reader/ring.h"
#include "source/remote/http.h"
#include "source/remote/remote.h"

#include <stdlib.h>

enum { JOINED = 16 };
/* More than this is worth a request of its own, and bytes between two samples no more than that. */
#define JOINED_BYTES (1u << 20)
#define GAP_BYTES    (64u << 10)

/* One request, and the berths that it fills. */
struct shipment {
    struct st_http_call call; /* first */
    struct st_reader *reader;
    struct st_remote *object;
    uint64_t end; /* of what it asks for */
    uint32_t count, put;
    struct st_berth *berths[JOINED];
    struct st_http_part parts[2 * JOINED]; /* with the gaps between them */
    uint32_t owner[2 * JOINED];            /* of part i: its berth, or JOINED for a gap */
};

static void deliver(struct shipment *shipment, int code, const struct stoker_error *err)
{
    struct st_berth *berth = shipment->berths[shipment->put++];
    if (code)
        berth->err = *err;
    berth->bytes = (struct st_bytes){berth->buffer.data, berth->buffer.size};
    st_ring_put(shipment->reader, berth, code);
}

/* All but the last are handed on as they come, in their order; while one is left, so is the reader. */
static void part_came(struct st_http_call *call, uint32_t part)
{
    struct shipment *shipment = (struct shipment *)call;
    if (shipment->owner[part] != JOINED && shipment->put + 1 < shipment->count)
        deliver(shipment, 0, NULL);
}

static void all_came(struct st_http_call *call, int code, const struct stoker_error *err)
{
    struct shipment *shipment = (struct shipment *)call;
    while (shipment->put < shipment->count)
        deliver(shipment, code, err);
    free(shipment);
}

static void add_part(struct shipment *shipment, uint8_t *into, uint64_t size, uint32_t owner)
{
    shipment->owner[shipment->call.part_count] = owner;
    shipment->parts[shipment->call.part_count++] = (struct st_http_part){into, size};
    shipment->end += size;
}

/* Puts the berth into the shipment, if it lies where this ends, or near. */
static bool add_berth(struct shipment *shipment, struct st_berth *berth, const struct st_extent *extent)
{
    const uint64_t begin = shipment->call.offset, gap = extent->offset - shipment->end;
    if (shipment->count && (extent->remote != shipment->object || extent->offset < shipment->end ||
                            gap > GAP_BYTES || extent->offset + extent->length - begin > JOINED_BYTES))
        return false;
    if (!st_buffer_reserve(&berth->buffer, extent->length))
        return false;
    if (!shipment->count)
        shipment->call.offset = shipment->end = extent->offset;
    else if (gap)
        add_part(shipment, NULL, gap, JOINED);
    berth->slept = true;
    berth->buffer.size = extent->length;
    add_part(shipment, berth->buffer.data, extent->length, shipment->count);
    shipment->berths[shipment->count++] = berth;
    return true;
}

/* Where the berth's sample is. */
static bool locate(struct st_reader *reader, struct st_berth *berth, struct st_extent *extent)
{
    return !st_locate(reader->data, st_ring_sample(reader, berth), extent, NULL) && !extent->memory;
}

/* Whether it can be read so. */
static bool is_range(const struct st_extent *extent)
{
    return !extent->objects && extent->remote && extent->length != ST_WHOLE_FILE &&
           st_remote_sends(extent->remote, extent->offset, extent->length);
}

/* The berths of the tickets behind it, for as long as they fit; the first that does not is left. */
static struct st_berth *add_neighbours(struct shipment *shipment, struct st_extent *extent)
{
    struct st_reader *reader = shipment->reader;
    while (shipment->count < JOINED) {
        pthread_mutex_lock(&reader->lock);
        struct st_berth *next = st_ring_take(reader);
        pthread_mutex_unlock(&reader->lock);
        if (!next)
            return NULL;
        if (!locate(reader, next, extent) || !is_range(extent) || !add_berth(shipment, next, extent))
            return next;
    }
    return NULL;
}

/* ---- whole objects ------------------------------------------------------------------------------ */

/* One berth, and the object that fills it. */
struct parcel {
    struct st_remote_fetch fetch; /* first */
    struct st_reader *reader;
    struct st_berth *berth;
};

static void object_came(struct st_remote_fetch *fetch, int code, const struct stoker_error *err)
{
    struct parcel *parcel = (struct parcel *)fetch;
    struct st_reader *reader = parcel->reader;
    struct st_berth *berth = parcel->berth;
    free(parcel);
    if (code)
        berth->err = *err;
    berth->bytes = (struct st_bytes){berth->buffer.data, berth->buffer.size};
    st_ring_put(reader, berth, code);
}

static bool send_object(struct st_reader *reader, struct st_berth *berth, const struct st_extent *extent)
{
    struct stoker_error err;
    struct parcel *parcel = st_calloc(1, sizeof *parcel);
    if (!parcel)
        return false;
    *parcel = (struct parcel){.fetch = {.into = &berth->buffer,
                                        .limit = ST_SAMPLE_MAX,
                                        .cancel = &reader->cancelled,
                                        .done = object_came},
                              .reader = reader,
                              .berth = berth};
    berth->slept = true;
    const int rc = st_remote_set_send(extent->objects, extent->path, &parcel->fetch, &err);
    if (rc)
        object_came(&parcel->fetch, rc, &err);
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
    struct shipment *shipment = st_calloc(1, sizeof *shipment);
    if (!shipment)
        return false;
    shipment->reader = reader;
    shipment->object = extent.remote;
    if (!add_berth(shipment, berth, &extent)) {
        free(shipment);
        return false;
    }
    *left = add_neighbours(shipment, &extent);
    shipment->call.parts = shipment->parts;
    shipment->call.cancel = &reader->cancelled;
    shipment->call.part = part_came;
    shipment->call.done = all_came;
    const int rc = st_remote_send(shipment->object, &shipment->call, &err);
    if (rc)
        all_came(&shipment->call, rc, &err);
    return true;
}
