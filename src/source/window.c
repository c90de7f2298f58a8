/* window.c - looks into a file here and there, from its beginning to its end
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/window.h"

#define SPAN_MIN 8192u
#define SPAN_MAX (1u << 20)
#define GRAIN    4096u
/* A request takes as long as so many bytes: it is better to read on than to ask again. */
#define SPAN_REMOTE (4u << 20)

/* Fills the buffer from a little before `offset` on. */
static bool look(struct st_window *w, uint64_t offset, uint64_t size, struct stoker_error *err)
{
    const uint64_t seen = w->at + w->buffer.size, from = offset / GRAIN * GRAIN;
    const bool near = offset >= w->at && offset < seen + 8 * w->span;
    w->span = near && w->span ? w->span * 2 : SPAN_MIN;
    if (w->span > SPAN_MAX)
        w->span = SPAN_MAX;
    if (w->file->remote)
        w->span = SPAN_REMOTE;
    uint64_t wanted = offset - from + size;
    if (wanted < w->span)
        wanted = w->span;
    if (wanted > w->end - from)
        wanted = w->end - from;
    w->buffer.size = 0;
    if (!st_buffer_reserve(&w->buffer, wanted)) {
        st_fail(err, STOKER_ENOMEM, "%s: out of memory", w->path);
        return false;
    }
    if (st_held_read(w->file, from, w->buffer.data, wanted, err))
        return false;
    w->at = from;
    w->buffer.size = wanted;
    return true;
}

const uint8_t *st_window_at(struct st_window *w, uint64_t offset, uint64_t size,
                            struct stoker_error *err)
{
    if (w->memory)
        return w->memory + (offset - w->base);
    const bool seen =
        offset >= w->at && offset - w->at <= w->buffer.size && size <= w->buffer.size - (offset - w->at);
    return seen || look(w, offset, size, err) ? w->buffer.data + (offset - w->at) : NULL;
}

void st_window_free(struct st_window *w) { st_buffer_free(&w->buffer); }
