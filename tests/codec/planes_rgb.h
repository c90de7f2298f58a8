/* planes_rgb.h - RGB from planes of Y, Cb and Cr by the decoder's own loops, for tests of devices
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_PLANES_RGB_H
#define ST_TESTS_PLANES_RGB_H

#include "base/pixels.h"
#include "codec/jpeg/kernels.h"
#include "pipe/device.h"

#include <stdlib.h>
#include <string.h>

enum { PLANES_PAD = 64 };

/* A row of `count` samples, of which those from `first` to `last` are there, with repeated edges, and readable beyond
 * them. */
static inline uint8_t *planes_row(const uint8_t *from, int32_t count, int32_t first, int32_t last)
{
    uint8_t *row = (uint8_t *)calloc(1, (size_t)count + 3 * PLANES_PAD) + PLANES_PAD;
    first = first < 0 ? 0 : first;
    last = last < count ? last : count - 1;
    memcpy(row + first, from + first, (size_t)(last - first + 1));
    row[-1] = row[0];
    row[count] = row[count - 1];
    return row;
}

/* Row `y` of one chroma component, as wide as the image, for `width` pixels from planes.x on; the caller frees it. */
static inline uint8_t *planes_chroma(const struct st_job_planes *p, int c, int32_t y, int32_t width)
{
    const int32_t h = (int32_t)p->h, first = p->x / h - 1, last = (p->x + width - 1) / h + 1;
    const uint8_t *plane = (const uint8_t *)(uintptr_t)p->chroma[c];
    const int32_t near = y / (int32_t)p->v;
    int32_t far = y % 2 ? near + 1 : near - 1;
    far = far < 0 ? 0 : far >= p->height ? p->height - 1 : far;
    uint8_t *a = planes_row(plane + (size_t)near * p->stride, p->width, first, last);
    uint8_t *b = planes_row(plane + (size_t)far * p->stride, p->width, first, last);
    uint8_t *out = calloc(1, 2 * (size_t)p->width + 4 * PLANES_PAD);
    if (p->h == 2 && p->width < 3)
        for (int32_t k = 0; k < 2 * p->width; k++)
            out[k] = a[k / 2];
    else if (p->h == 2 && p->v == 1)
        st_jpeg_kernels_c.h2v1(out, a, p->width);
    else if (p->h == 2)
        st_jpeg_kernels_c.h2v2(out, a, b, p->width);
    else if (p->v == 2)
        st_jpeg_kernels_c.h1v2(out, a, b, y % 2 ? 2 : 1, p->width);
    else
        memcpy(out, a, (size_t)p->width);
    free(a - PLANES_PAD);
    free(b - PLANES_PAD);
    return out;
}

/* The region of the job's planes that starts at planes.x, planes.y, and is as large as `to`. */
static inline void planes_rgb(const struct st_job *job, const struct st_view *to)
{
    const struct st_job_planes *p = &job->planes;
    const uint8_t *luma = (const uint8_t *)(uintptr_t)job->pixels;
    uint8_t *light = calloc(1, (size_t)to->width + 2 * PLANES_PAD);
    uint8_t *rgb = calloc(3, (size_t)to->width + 2 * PLANES_PAD);
    for (int32_t y = 0; y < to->height; y++) {
        uint8_t *blue = planes_chroma(p, 0, p->y + y, to->width);
        uint8_t *red = planes_chroma(p, 1, p->y + y, to->width);
        memcpy(light, luma + (size_t)(p->y + y) * job->stride + p->x, (size_t)to->width);
        st_jpeg_kernels_c.ycc(rgb, light, blue + p->x, red + p->x, to->width);
        memcpy(st_row(to, y), rgb, 3 * (size_t)to->width);
        free(blue);
        free(red);
    }
    free(light);
    free(rgb);
}

#endif
