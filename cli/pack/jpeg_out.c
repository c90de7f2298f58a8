/* jpeg_out.c - a destination for libjpeg: a buffer that we always own, even after an error
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/jpeg_out.h"

#include "source/shards/unpack.h"

#include <jerror.h>

enum { ROOM = 65536 };

static void give_up(j_common_ptr cinfo) { longjmp(((struct pack_jpeg_errors *)cinfo->err)->out, 1); }

static void no_output(j_common_ptr cinfo) { (void)cinfo; }

static void warn(j_common_ptr cinfo, int level)
{
    if (level >= 0)
        return;
    cinfo->err->num_warnings++;
    if (((struct pack_jpeg_errors *)cinfo->err)->strict)
        give_up(cinfo);
}

struct jpeg_error_mgr *pack_jpeg_errors(struct pack_jpeg_errors *errors, bool strict)
{
    jpeg_std_error(&errors->manager);
    errors->manager.error_exit = give_up;
    errors->manager.output_message = no_output;
    errors->manager.emit_message = warn;
    errors->strict = strict;
    return &errors->manager;
}

/* Extends the buffer after its `size` bytes. */
static void make_room(j_compress_ptr cinfo)
{
    struct pack_jpeg_out *out = (struct pack_jpeg_out *)cinfo->dest;
    struct st_buffer *buffer = out->buffer;
    if (!st_buffer_keep(buffer, buffer->size + buffer->size / 2 + ROOM))
        ERREXIT1(cinfo, JERR_OUT_OF_MEMORY, 0);
    out->manager.next_output_byte = buffer->data + buffer->size;
    out->manager.free_in_buffer = buffer->capacity - buffer->size;
}

/* libjpeg calls this when the whole free space is used, whatever free_in_buffer is. */
static boolean when_full(j_compress_ptr cinfo)
{
    struct st_buffer *buffer = ((struct pack_jpeg_out *)cinfo->dest)->buffer;
    buffer->size = buffer->capacity;
    make_room(cinfo);
    return TRUE;
}

static void at_end(j_compress_ptr cinfo)
{
    struct pack_jpeg_out *out = (struct pack_jpeg_out *)cinfo->dest;
    out->buffer->size = out->buffer->capacity - out->manager.free_in_buffer;
}

void pack_jpeg_out(struct jpeg_compress_struct *cinfo, struct pack_jpeg_out *out,
                   struct st_buffer *buffer)
{
    buffer->size = 0;
    *out = (struct pack_jpeg_out){.manager = {.init_destination = make_room,
                                              .empty_output_buffer = when_full,
                                              .term_destination = at_end},
                                  .buffer = buffer};
    cinfo->dest = &out->manager;
}
