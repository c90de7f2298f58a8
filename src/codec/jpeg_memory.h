/* jpeg_memory.h - libjpeg's memory, allocated from an arena that is reused for all images
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_MEMORY_H
#define ST_CODEC_JPEG_MEMORY_H

#include "base/mem.h"

#include <stdio.h>

#include <jpeglib.h>

struct st_jpeg_memory {
    struct st_arena image;  /* until the next jpeg_abort */
    struct st_arena tables; /* of one file, which may hold several streams of tables before the image */
    struct jvirt_barray_control *arrays; /* requested, not yet allocated */
};

/* To be called once, after jpeg_create_decompress. Uses cinfo->client_data. */
void st_jpeg_memory_use(struct jpeg_decompress_struct *cinfo, struct st_jpeg_memory *memory);
/* Before each file: drops the tables of the previous one, which must not leak into another. */
void st_jpeg_memory_forget(struct jpeg_decompress_struct *cinfo);
/* After jpeg_destroy. */
void st_jpeg_memory_free(struct st_jpeg_memory *memory);

#endif
