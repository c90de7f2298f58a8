/* window.c - looks into a file here and there, from its beginning to its end
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shards/window.h"

#include "base/clock.h"

#define SPAN_MIN 8192u
#define SPAN_MAX (1u << 20)
#define GRAIN    4096u
#define MIB      (1u << 20)

/* Requests to a server: short ones, and those that read on. */
#define SPAN_HOP    (16u << 10)
#define SPAN_STREAM (4u << 20)
/* Places as near as this are not worth requests of their own, and those as far as that always, whatever
 * requests cost. */
#define STRIDE_NEAR (128u << 10)
#define STRIDE_FAR  (8u << 20)
/* The first request may have opened a connection: what one costs is seen by the second. */
enum { HOPS_TIMED = 2 };

static uint64_t local_span(const struct st_window *w, uint64_t offset)
{
    const uint64_t seen = w->at + w->buffer.size;
    const bool near = offset >= w->at && offset < seen + 8 * w->span;
    const uint64_t span = near && w->span ? w->span * 2 : SPAN_MIN;
    return span < SPAN_MAX ? span : SPAN_MAX;
}

/* To hop to the next place costs a request; to read on costs what lies between. */
static uint64_t remote_span(const struct st_window_pace *pace)
{
    if (!pace->hops)
        return SPAN_HOP;
    if (pace->stride < STRIDE_NEAR)
        return SPAN_STREAM;
    if (pace->hops < HOPS_TIMED || pace->stride > STRIDE_FAR)
        return SPAN_HOP;
    return pace->mib_ns && pace->stride / 1024 * pace->mib_ns / 1024 > pace->hop_ns ? SPAN_HOP
                                                                                    : SPAN_STREAM;
}

/* Counts the requests that hopping would have taken, whether or not it is done. */
static void note_place(struct st_window_pace *pace, uint64_t offset, uint64_t size)
{
    if (offset >= pace->hop_at && offset + size <= pace->hop_at + SPAN_HOP)
        return;
    const uint64_t gap = offset > pace->hop_at ? offset - pace->hop_at : 0;
    pace->stride = pace->stride ? pace->stride - pace->stride / 4 + gap / 4 : gap;
    pace->hop_at = offset;
}

static void note_time(struct st_window_pace *pace, uint64_t size, uint64_t took)
{
    if (size <= SPAN_HOP + GRAIN) {
        pace->hop_ns = pace->hops && pace->hop_ns < took ? pace->hop_ns : took;
        pace->hops++;
    } else if (size >= MIB) {
        const uint64_t each = (took > pace->hop_ns ? took - pace->hop_ns : 1) / (size / MIB) + 1;
        pace->mib_ns = pace->mib_ns ? (pace->mib_ns + each) / 2 : each;
    }
}

static int fill(struct st_window *w, uint64_t from, uint64_t size, struct stoker_error *err)
{
    const uint64_t began = w->file->remote ? st_now_ns() : 0;
    const int rc = st_held_read(w->file, from, w->buffer.data, size, err);
    if (!rc && w->file->remote)
        note_time(&w->pace, size, st_now_ns() - began);
    return rc;
}

/* Fills the buffer from a little before `offset` on. */
static bool look(struct st_window *w, uint64_t offset, uint64_t size, struct stoker_error *err)
{
    const uint64_t from = offset / GRAIN * GRAIN;
    w->span = w->file->remote ? remote_span(&w->pace) : local_span(w, offset);
    uint64_t wanted = offset - from + size;
    if (wanted < w->span)
        wanted = w->span;
    if (w->reach && from + wanted > w->reach)
        wanted = offset + size > w->reach ? offset + size - from : w->reach - from;
    if (wanted > w->end - from)
        wanted = w->end - from;
    w->buffer.size = 0;
    if (!st_buffer_reserve(&w->buffer, wanted)) {
        w->failed = st_fail(err, STOKER_ENOMEM, "%s: out of memory", w->path);
        return false;
    }
    const int rc = fill(w, from, wanted, err);
    if (rc) {
        w->failed = rc;
        return false;
    }
    w->at = from;
    w->buffer.size = wanted;
    return true;
}

const uint8_t *st_window_at(struct st_window *w, uint64_t offset, uint64_t size,
                            struct stoker_error *err)
{
    if (w->memory)
        return w->memory + (offset - w->base);
    if (w->file->remote)
        note_place(&w->pace, offset, size);
    const bool seen =
        offset >= w->at && offset - w->at <= w->buffer.size && size <= w->buffer.size - (offset - w->at);
    return seen || look(w, offset, size, err) ? w->buffer.data + (offset - w->at) : NULL;
}

void st_window_free(struct st_window *w) { st_buffer_free(&w->buffer); }
