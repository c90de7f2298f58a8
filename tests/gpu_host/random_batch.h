/* random_batch.h - for tests of the GPU's kernels: batches of any jobs, and what the CPU makes of them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_RANDOM_BATCH_H
#define ST_TESTS_RANDOM_BATCH_H

#include "op/geometry/edges.h"
#include "op/resize/resize.h"
#include "pipe/device.h"

/* What chance may choose from. */
struct batch_limits {
    uint32_t rows;
    int32_t out_most;  /* of the output's sides; the input's are of the same order, and of others */
    int32_t width, height, channels; /* 0: by chance */
    bool pending, warps; /* warps: most pending ops are maps of pixels */
};

struct random_batch {
    struct st_finish_spec spec;
    struct st_finish finish;
    struct st_device_want want;
    uint8_t *host;         /* as a slot's host half; addresses of the device not yet settled */
    uint64_t used, capacity;
    uint8_t *expected;
    uint64_t bytes;        /* of the output */
    struct st_arena arena;
    uint64_t seed;
    int32_t width, height; /* of the image whose ops are made: the output's, or a front's */
    void (*fill)(uint8_t *pixels); /* NULL: with noise */
};

/* A batch by chance. */
void random_batch_make(struct random_batch *b, uint64_t seed, const struct batch_limits *limits);
void random_batch_free(struct random_batch *b);
/* Settles the addresses of pixels that lie on the device: the host half will be at `raw` there. Once. */
void random_batch_place(struct random_batch *b, uint64_t raw);
/* "row 3 (17 x 5 to 32 x 9, ...)": the first row that differs. NULL: none does. */
const char *random_batch_differs(const struct random_batch *b, const uint8_t *images);

/* By hand: a batch of `rows` for a given output, and its rows one after the other. */
void batch_begin(struct random_batch *b, const struct st_device_want *want,
                 const struct st_finish_spec *spec, enum stoker_dtype dtype, enum stoker_layout layout);
struct row_wish {
    struct st_resize resize; /* its window is as large as the output, unless there are edges */
    bool mirror, flip, device;
    const struct st_edges *edges; /* NULL: none; of the window, and as large as the output. Of a resize by weights:
                                     in one direction */
    bool aligned; /* input rows start at words, as the loader's do */
    const struct st_pending *pending;
    uint32_t pending_count, erase_count;
    bool random_values; /* in erased boxes */
    const struct row_wish *front; /* NULL: none. Its window is as large as the resize's input */
    bool three;         /* channels before the last pending op, which makes the batch's one of them */
};
void batch_row(struct random_batch *b, uint32_t row, const struct row_wish *wish);

#endif
