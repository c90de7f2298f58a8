/* planes.h - pixels from the samples of a JPEG: interpolated chroma, and RGB
 *
 * The same integers as codec/jpeg/: pixels.c says which samples belong to a pixel, kernels_c.c how they
 * are mixed and converted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_PLANES_H
#define ST_GPU_PLANES_H

#include "gpu/arith.h"
#include "gpu/batch.h"

enum { ST_CHROMA_WIDE_ENOUGH = 3 }; /* narrower components are repeated, not interpolated */

ST_BOTH struct st_planes st_planes_of(const uint8_t *raw, const struct st_job *job)
{
    const struct st_job_planes *from = &job->planes;
    const uintptr_t chroma = from->stride ? 0 : (uintptr_t)raw; /* grey: in the heap */
    struct st_planes planes;
    planes.luma = (const uint8_t *)(uintptr_t)job->pixels;
    planes.blue = (const uint8_t *)(chroma + (uintptr_t)from->chroma[0]);
    planes.red = (const uint8_t *)(chroma + (uintptr_t)from->chroma[1]);
    planes.stride = job->stride;
    planes.chroma_stride = from->stride;
    planes.x = from->x;
    planes.y = from->y;
    planes.last_x = from->width - 1;
    planes.last_y = from->height - 1;
    planes.half_x = from->h > 1;
    planes.half_y = from->v > 1;
    planes.repeated = planes.half_x && from->width < ST_CHROMA_WIDE_ENOUGH;
    return planes;
}

#define ST_YCC_CENTRES 0x80808080u /* of chroma, four times */

/* A pixel's channels, not clamped. */
struct st_ycc {
    int32_t r, g, b;
};

/* Byte `k` of luma with 16 fractional bits, plus the half that rounds the sum. */
ST_BOTH int32_t st_ycc_light(uint32_t luma, int32_t k)
{
    return (int32_t)st_bytes_of(luma, 0x8000, 0x6054 + 0x100 * (uint32_t)k);
}

/* libjpeg's factors with 16 fractional bits; chroma less 128. */
ST_BOTH struct st_ycc st_ycc_of(int32_t light, int32_t blue, int32_t red)
{
    const struct st_ycc ycc = {(light + 91881 * red) >> 16, (light - 22554 * blue - 46802 * red) >> 16,
                               (light + 116130 * blue) >> 16};
    return ycc;
}

ST_BOTH uint32_t st_ycc_pixel(uint32_t light, int32_t blue, int32_t red)
{
    const struct st_ycc ycc = st_ycc_of(st_ycc_light(light, 0), blue - 128, red - 128);
    return st_clamped_four(ycc.r, ycc.g, ycc.b, 0);
}

/* The sample of a pixel's neighbour: the next one for odd positions, else the one before; at the edges
 * the outermost sample is its own neighbour. */
ST_BOTH int32_t st_chroma_far(int32_t near, int32_t odd, int32_t last)
{
    const int32_t far = odd ? near + 1 : near - 1;
    return far < 0 ? 0 : far > last ? last : far;
}

/* Where a pixel's chroma samples lie, and how they are mixed. */
struct st_chroma {
    uint32_t near, far; /* offsets of rows */
    int32_t x, far_x;
    int32_t odd_x, odd_y;
};

ST_BOTH struct st_chroma st_chroma_at(const struct st_planes *planes, int32_t x, int32_t y)
{
    struct st_chroma at;
    const int32_t row = y >> planes->half_y;
    at.odd_x = x & 1;
    at.odd_y = y & 1;
    at.x = x >> planes->half_x;
    at.far_x = st_chroma_far(at.x, at.odd_x, planes->last_x);
    at.near = (uint32_t)row * planes->chroma_stride;
    at.far = (uint32_t)st_chroma_far(row, at.odd_y, planes->last_y) * planes->chroma_stride;
    return at;
}

/* A column of two samples, 3/4 of the nearer and 1/4 of the farther, times four. */
ST_BOTH int32_t st_chroma_column(const uint8_t *plane, const struct st_chroma *at, int32_t x)
{
    return 3 * (int32_t)st_load_byte(plane + at->near + x) + (int32_t)st_load_byte(plane + at->far + x);
}

ST_BOTH int32_t st_chroma_value(const struct st_planes *planes, const uint8_t *plane,
                                const struct st_chroma *at)
{
    const uint8_t *row = plane + at->near;
    if (planes->repeated || !(planes->half_x | planes->half_y))
        return (int32_t)st_load_byte(row + at->x);
    if (!planes->half_y)
        return (3 * (int32_t)st_load_byte(row + at->x) + (int32_t)st_load_byte(row + at->far_x) + 1 +
                at->odd_x) >> 2;
    if (!planes->half_x)
        return (st_chroma_column(plane, at, at->x) + 1 + at->odd_y) >> 2;
    return (3 * st_chroma_column(plane, at, at->x) + st_chroma_column(plane, at, at->far_x) + 8 -
            at->odd_x) >> 4;
}

/* Pixel `x`, `y` of the region, as a word. */
ST_BOTH uint32_t st_planes_pixel(const struct st_planes *planes, int32_t x, int32_t y)
{
    x += planes->x;
    y += planes->y;
    const struct st_chroma at = st_chroma_at(planes, x, y);
    const uint8_t *light = planes->luma + (uint64_t)(uint32_t)y * planes->stride + (uint32_t)x;
    return st_ycc_pixel(st_load_byte(light), st_chroma_value(planes, planes->blue, &at),
                        st_chroma_value(planes, planes->red, &at));
}

#endif
