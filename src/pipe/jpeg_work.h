/* jpeg_work.h - what a JPEG thread works on: a chunk of tickets
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_JPEG_WORK_H
#define ST_PIPE_JPEG_WORK_H

#include "op/image.h"
#include "pipe/executor.h"

enum {
    ST_JPEG_CHUNK_MOST = ST_STEER_CHUNK_MOST, /* tickets */
    ST_JPEG_FILES_PART = 64, /* fraction of max_memory for the files that a thread holds at once */
    /* bytes of an image that is decoded; larger ones, or their regions, the CPU decodes: */
    ST_JPEG_IMAGE_MOST = 16 << 20,
};

/* A ticket whose file the hardware decodes. */
struct st_jpeg_item {
    uint64_t ticket;
    uint32_t row;
    struct st_bytes bytes; /* of the sample; they contain the file */
    struct st_image image; /* with its pending ops */
    uint64_t cost;         /* for a CPU: st_jpeg_cpu_cost */
};

/* A ticket that this thread processes itself. */
struct st_jpeg_left {
    uint64_t ticket;
    uint32_t row;
    struct st_bytes bytes;
};

struct st_jpeg_thread {
    struct st_worker worker; /* for the samples that it makes itself */
    struct st_jpeg_hw *hw;
    struct st_jpeg_pinned pinned; /* files and images that do not fit there take longer */
    struct st_buffer file[ST_JPEG_CHUNK_MOST]; /* read by this thread, if possible to pinned memory */
    uint32_t large; /* so many of the next files are not read there, because one did not fit */
    uint32_t count;
    struct st_jpeg_item item[ST_JPEG_CHUNK_MOST];
    struct st_jpeg_hw_image decoded[ST_JPEG_CHUNK_MOST];
    uint32_t left_count;
    struct st_jpeg_left left[ST_JPEG_CHUNK_MOST];
    uint32_t given;                /* to the hardware, of the whole chunk */
    struct st_steer_thread steer;
    struct st_steer_times times;   /* of the last chunk */
    _Atomic uint64_t rows, failed; /* decoded by the hardware; rejected by it */
    uint32_t lost;                 /* failed chunks in a row: nothing was decoded, or the device fails */
};

#endif
