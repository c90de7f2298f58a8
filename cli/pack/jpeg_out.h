/* jpeg_out.h - a destination for libjpeg: a buffer that we always own, even after an error
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_PACK_JPEG_OUT_H
#define ST_CLI_PACK_JPEG_OUT_H

#include "base/mem.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

/* An error jumps to `out`; with `strict`, so does a warning. */
struct pack_jpeg_errors {
    struct jpeg_error_mgr manager;
    jmp_buf out;
    bool strict;
};
struct jpeg_error_mgr *pack_jpeg_errors(struct pack_jpeg_errors *errors, bool strict);

struct pack_jpeg_out {
    struct jpeg_destination_mgr manager;
    struct st_buffer *buffer;
};
/* Replaces the contents of the buffer. */
void pack_jpeg_out(struct jpeg_compress_struct *cinfo, struct pack_jpeg_out *out,
                   struct st_buffer *buffer);

#endif
