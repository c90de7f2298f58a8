/* cv.h - operations on arrays of bytes with OpenCV's arithmetic
 *
 * Each gives the bytes that the function of OpenCV 5 gives that its name says, on the CPUs on which that
 * was compared: callers in Python compare with the installed OpenCV before they rely on it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_CV_CV_H
#define ST_OP_CV_CV_H

#include "base/cpu.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ST_CV_TABLES = 2,   /* at most, of one call */
    ST_CV_SIDE = 32766, /* of an image in pixels, at most: OpenCV's maps have 16 bits */
    ST_CV_CHANNELS = 4, /* at most */
};

/* The borders of OpenCV, by its numbers. */
enum st_cv_border {
    ST_CV_BORDER_CONSTANT,
    ST_CV_BORDER_REPLICATE,
    ST_CV_BORDER_REFLECT,
    ST_CV_BORDER_WRAP,
    ST_CV_BORDER_REFLECT_101,
};

/* Of which images the pixels of a resize or warp are parts. */
struct st_cv_parts {
    int32_t in_width, in_height, out_width, out_height;
    struct st_region in, out; /* `in` has everything that `out` depends on */
};
/* Of a resize: the part of the input that the part of the result depends on, and perhaps some more. */
struct st_region st_cv_resize_needs(const struct st_cv_parts *parts);

struct st_cv_call {
    struct st_view in, out; /* they do not overlap */
    const double *numbers;  /* the op's, all finite */
    uint32_t count;
    struct st_bytes table[ST_CV_TABLES]; /* of the op: numbers for each value or pixel */
    uint32_t tables;
    /* NULL; nearest and linear resizes: `in` and `out` are these parts; affine and perspective warps:
     * `out` is, and only that part of `in` is read */
    const struct st_cv_parts *parts;
    double factor; /* resizes: 0, or what the sides were multiplied by and rounded, OpenCV's fx and fy */
    struct st_arena *arena; /* for scratch memory */
    enum st_cpu_level level;
};

struct st_cv_op {
    const char *name, *help;
    uint32_t least, most; /* how many numbers it has */
    uint32_t least_tables, most_tables;
    int (*run)(const struct st_cv_call *call, struct stoker_error *err);
};

extern const struct st_cv_op *const st_cv_ops[]; /* NULL at the end */
const struct st_cv_op *st_cv_find(const char *name);

/* Checks the call, and runs the op. */
int st_cv_run(const struct st_cv_op *op, const struct st_cv_call *call, struct stoker_error *err);

/* The nearest integer, and of two the even one; of numbers below 2^22. Compilers make vectors of it. */
static inline float st_cv_round(float value) { return value + 0x1.8p23f - 0x1.8p23f; }

/* For ops: the failures that several have. */
int st_cv_no_memory(const char *op, struct stoker_error *err);
/* Whether the number at `at` is an integer from `low` to `high`. */
bool st_cv_whole(const struct st_cv_call *call, uint32_t at, double low, double high);

#endif
