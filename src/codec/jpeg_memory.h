/* jpeg_memory.h - libjpeg's memory, out of an arena that stays from image to image
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_MEMORY_H
#define ST_CODEC_JPEG_MEMORY_H

#include "base/mem.h"

#include <stdio.h>

#include <jpeglib.h>

struct st_jpeg_memory {
    struct st_arena arena;
    struct jvirt_barray_control *arrays; /* asked for, not yet there */
};

/* To be called once, after jpeg_create_decompress. From then on everything libjpeg asks for lives until
 * the next jpeg_abort, the "permanent" tables included: the caller drops its pointers to those before
 * each image (st_jpeg_memory_forget), so that no image sees the tables of the one before. The caller
 * frees the arena after jpeg_destroy. Uses cinfo->client_data. */
void st_jpeg_memory_use(struct jpeg_decompress_struct *cinfo, struct st_jpeg_memory *memory);
void st_jpeg_memory_forget(struct jpeg_decompress_struct *cinfo);

#endif
