/* raw_rows.h - batches of raw rows, each image of another size, and what the CPU makes of them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_RAW_ROWS_H
#define ST_TESTS_RAW_ROWS_H

#include <string.h>

#include "op/resize/taps.h"
#include "pipe/device.h"

enum {
    RAW_ROWS = 6,
    RAW_WIDTH = 40,
    RAW_HEIGHT = 36,
    RAW_SIDE_MAX = 200,
    RAW_IMAGES = RAW_ROWS * RAW_WIDTH * RAW_HEIGHT * 3 * 4,
    RAW_HEAP = RAW_ROWS * (RAW_SIDE_MAX * RAW_SIDE_MAX * 3 + 64 * 1024)
};

struct raw_rows {
    struct st_finish finish;
    const struct st_kernels *kernels;
    struct st_arena arena;
};

static inline void raw_rows_init(struct raw_rows *raw)
{
    const struct st_finish_spec spec = {.scaled = true,
                                        .dtype = STOKER_DTYPE_F32,
                                        .steps = 1,
                                        .step = {{{0.4f, 0.5f, 0.6f}, {0.2f, 0.3f, 0.25f}}}};
    memset(raw, 0, sizeof *raw);
    raw->kernels = st_kernels_for(st_cpu_level());
    st_finish_init(&raw->finish, &spec, STOKER_DTYPE_F32, STOKER_LAYOUT_NCHW, 3, NULL);
}

static inline struct st_device_want raw_want(const struct raw_rows *raw, int ordinal)
{
    return (struct st_device_want){.ordinal = ordinal,
                                   .rows = RAW_ROWS,
                                   .width = RAW_WIDTH,
                                   .height = RAW_HEIGHT,
                                   .channels = 3,
                                   .finish = &raw->finish,
                                   .raw = true,
                                   .plain = true,
                                   .host_bytes = st_host_heap(RAW_ROWS) + RAW_HEAP};
}

static inline uint32_t raw_chance(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static inline uint64_t raw_put(uint8_t *host, uint64_t *used, const void *data, uint64_t bytes)
{
    const uint64_t at = *used;
    memcpy(host + at, data, bytes);
    *used = st_align(at + bytes, 64);
    return at;
}

static inline struct st_job_side raw_side(struct raw_rows *raw, const struct st_side *side,
                                          uint8_t *host, uint64_t *used)
{
    struct st_taps taps;
    if (st_side_stays(side) || !st_side_taps(side, false, &raw->arena, &taps))
        return (struct st_job_side){0};
    const uint64_t firsts = (uint64_t)taps.count * sizeof *taps.first, at = *used;
    memcpy(host + at, taps.first, firsts);
    memcpy(host + at + firsts, taps.weight, firsts * (uint64_t)taps.width);
    *used = st_align(at + firsts * (1 + (uint64_t)taps.width), 64);
    return (struct st_job_side){.at = at,
                                .width = taps.width,
                                .window = st_job_window(taps.first, taps.count, taps.width)};
}

/* Batch `number` into the host half, and the finished images into `expected`. Returns the bytes used. */
static inline uint64_t raw_rows_fill(struct raw_rows *raw, uint8_t *host, uint32_t number,
                                     uint8_t *expected)
{
    struct st_job *jobs = (struct st_job *)(void *)host;
    int64_t *labels = (int64_t *)(void *)(host + st_host_raw_labels(RAW_ROWS));
    uint64_t used = st_host_heap(RAW_ROWS);
    uint32_t state = number * 2654435761u + 1;
    for (uint32_t row = 0; row < RAW_ROWS; row++) {
        st_arena_reset(&raw->arena);
        struct st_resize resize = {.in_width = 20 + (int32_t)raw_chance(&state) % (RAW_SIDE_MAX - 20),
                                   .in_height = 20 + (int32_t)raw_chance(&state) % (RAW_SIDE_MAX - 20),
                                   .out_width = RAW_WIDTH,
                                   .out_height = RAW_HEIGHT,
                                   .window = {0, 0, RAW_WIDTH, RAW_HEIGHT},
                                   .filter = ST_FILTER_BILINEAR,
                                   .pillow = 13};
        const uint32_t stride = (uint32_t)resize.in_width * 3,
                       bytes = stride * (uint32_t)resize.in_height;
        uint8_t *pixels = st_arena_take(&raw->arena, bytes);
        for (uint32_t k = 0; k < bytes; k++)
            pixels[k] = (uint8_t)(raw_chance(&state) ^ number);
        const struct st_side x = st_resize_side_x(&resize), y = st_resize_side_y(&resize);
        jobs[row] = (struct st_job){.pixels = raw_put(host, &used, pixels, bytes),
                                    .from = ST_JOB_HEAP,
                                    .stride = stride,
                                    .in_width = resize.in_width,
                                    .in_height = resize.in_height,
                                    .width = RAW_WIDTH,
                                    .height = RAW_HEIGHT,
                                    .channels = 3,
                                    .vertical_first = st_resize_vertical_first(&resize),
                                    .x = raw_side(raw, &x, host, &used),
                                    .y = raw_side(raw, &y, host, &used),
                                    .mirror = raw_chance(&state) & 1,
                                    .flip = raw_chance(&state) & 1};
        labels[row] = (int64_t)number * 100 + row;
        const struct st_view view = {pixels, (ptrdiff_t)stride, resize.in_width, resize.in_height, 3};
        const struct st_place place = {expected + (size_t)row * (RAW_IMAGES / RAW_ROWS), RAW_WIDTH,
                                       RAW_HEIGHT};
        st_resize_finish(&resize, raw->kernels, &raw->arena, &view, &raw->finish, jobs[row].mirror,
                         jobs[row].flip, &place);
    }
    return used;
}

#endif
