/* host_warp.h - for the device in plain memory: a warp of a job, pixel by pixel
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_HOST_WARP_H
#define ST_TESTS_HOST_WARP_H

#include "pipe/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Mirrored and flipped, in place. */
static void host_turn(struct st_view *v, bool mirror, bool flip)
{
    const size_t c = (size_t)v->channels, row = (size_t)v->width * c;
    uint8_t *copy = malloc(row * (size_t)v->height);
    for (int32_t y = 0; y < v->height; y++)
        memcpy(copy + (size_t)y * row, st_row(v, y), row);
    for (int32_t y = 0; y < v->height; y++)
        for (int32_t x = 0; x < v->width; x++)
            memcpy(st_row(v, y) + (size_t)x * c,
                   copy + (size_t)(flip ? v->height - 1 - y : y) * row +
                       (size_t)(mirror ? v->width - 1 - x : x) * c,
                   c);
    free(copy);
}

/* The value at a whole place; places outside have that of the nearest pixel inside. */
static double host_value(const struct st_view *v, double x, double y, int32_t c)
{
    const int32_t column = (int32_t)fmin(fmax(x, 0), v->width - 1);
    const int32_t row = (int32_t)fmin(fmax(y, 0), v->height - 1);
    return st_row(v, row)[column * v->channels + c];
}

static double host_between(const double *p, double by, uint32_t how)
{
    if (how == ST_JOB_WARP_BILINEAR)
        return p[1] + (p[2] - p[1]) * by;
    const double bend = 2 * (p[0] - p[1]) + p[2] - p[3], twist = -p[0] + p[1] - p[2] + p[3];
    return p[1] + by * (-p[0] + p[2] + by * (bend + by * twist));
}

static uint8_t host_mixed(const struct st_view *v, double x, double y, int32_t c, uint32_t how)
{
    const double left = floor(x - 0.5), top = floor(y - 0.5);
    double row[4];
    for (int j = 0; j < 4; j++) {
        double p[4];
        for (int i = 0; i < 4; i++)
            p[i] = host_value(v, left - 1 + i, top - 1 + j, c);
        row[j] = host_between(p, x - 0.5 - left, how);
    }
    return (uint8_t)fmin(fmax(host_between(row, y - 0.5 - top, how), 0), 255);
}

/* Where a pixel comes from: of the nearest the pixel itself. NaN: from outside. */
static void host_source(const struct st_job_warp *w, const int32_t *places, const struct st_view *v,
                        int32_t x, int32_t y, double from[2])
{
    const int32_t at[2] = {x, y}, side[2] = {v->width, v->height};
    const double by = w->perspective ? w->map[6] * (x + 0.5) + w->map[7] * (y + 0.5) + 1 : 1;
    for (int k = 0; k < 2; k++) {
        const double *map = w->map + 3 * k;
        const int64_t fixed = w->at[k] + y * w->down[k] + x * w->right[k];
        if (w->how == ST_JOB_WARP_PLACES)
            from[k] = places[at[k] + (k ? v->width : 0)];
        else if (w->how == ST_JOB_WARP_FIXED)
            from[k] = fixed < w->limit[k] ? floor((double)fixed / 65536) : -1;
        else
            from[k] = (map[0] * (x + 0.5) + map[1] * (y + 0.5) + map[2]) / by;
        if (!(from[k] >= 0 && from[k] < side[k]))
            from[0] = from[1] = NAN;
        if (isnan(from[0]))
            return;
    }
}

static void host_warp(const struct st_job_warp *w, const int32_t *places, struct st_view *v)
{
    const size_t row = (size_t)v->width * (size_t)v->channels;
    const struct st_view in = *v;
    v->data = malloc(row * (size_t)v->height);
    for (int32_t y = 0; y < v->height; y++)
        for (int32_t x = 0; x < v->width; x++) {
            double from[2];
            host_source(w, places, &in, x, y, from);
            for (int32_t c = 0; c < v->channels; c++)
                st_row(v, y)[x * v->channels + c] =
                    isnan(from[0])                     ? (uint8_t)(w->fill >> (8 * c))
                    : w->how >= ST_JOB_WARP_BILINEAR ? host_mixed(&in, from[0], from[1], c, w->how)
                                                       : (uint8_t)host_value(&in, floor(from[0]), floor(from[1]), c);
        }
    free(in.data);
    host_turn(v, w->mirror, w->flip);
}

#endif
