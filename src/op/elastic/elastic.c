/* elastic.c - moves every pixel by its own distance: a random, smooth displacement
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/elastic/elastic.h"

#include "op/elastic/mixed_pixels.h"
#include "op/filter/blur.h"

#include <math.h>
#include <string.h>

/* ---- displacement ------------------------------------------------------------------------------- */

int32_t st_displacement_taps(double sigma) { return (int32_t)(8 * sigma + 1) | 1; }

static void draw_noise(float *plane, uint64_t count, struct st_rng *rng)
{
    for (uint64_t i = 0; i < count; i++)
        plane[i] = (float)(int32_t)st_rng_u32(rng) * 0x1p-31f;
}

/* Reflects an index at the ends of [0, count). */
static int32_t reflected(int32_t i, int32_t count)
{
    return i < 0 ? -i : i >= count ? 2 * (count - 1) - i : i;
}

static void add_pair(float *restrict sum, const float *restrict before, const float *restrict after,
                     float weight, int32_t count)
{
    for (int32_t x = 0; x < count; x++)
        sum[x] += weight * (before[x] + after[x]);
}

static void blur_down(float *restrict out, const float *plane, int32_t y, int32_t width, int32_t height,
                      const float *weight, int32_t half)
{
    const float *middle = plane + (size_t)y * (size_t)width;
    for (int32_t x = 0; x < width; x++)
        out[x] = weight[0] * middle[x];
    for (int32_t k = 1; k <= half; k++)
        add_pair(out, plane + (size_t)reflected(y - k, height) * (size_t)width,
                 plane + (size_t)reflected(y + k, height) * (size_t)width, weight[k], width);
}

/* `row` has `half` values of room before and after it. */
static void blur_across(float *restrict out, float *row, int32_t width, const float *weight,
                        int32_t half)
{
    for (int32_t k = 1; k <= half; k++) {
        row[-k] = row[reflected(-k, width)];
        row[width - 1 + k] = row[reflected(width - 1 + k, width)];
    }
    for (int32_t x = 0; x < width; x++)
        out[x] = weight[0] * row[x];
    for (int32_t k = 1; k <= half; k++)
        add_pair(out, row - k, row + k, weight[k], width);
}

/* Blurs `plane` with as many taps in both directions; false: no memory. */
static bool blur(float *plane, int32_t width, int32_t height, int32_t taps, const double sigma[2],
                 struct st_arena *arena)
{
    const int32_t half = taps / 2;
    const uint64_t count = (uint64_t)width * (uint64_t)height;
    float *across = st_arena_take(arena, (uint64_t)(half + 1) * sizeof *across);
    float *down = st_arena_take(arena, (uint64_t)(half + 1) * sizeof *down);
    float *row = st_arena_take(arena, ((uint64_t)width + 2 * (uint64_t)half) * sizeof *row);
    float *whole = st_arena_take(arena, count * sizeof *whole);
    if (!across || !down || !row || !whole)
        return false;
    st_blur_weights(taps, sigma[0], across);
    st_blur_weights(taps, sigma[1], down);
    for (int32_t y = 0; y < height; y++) {
        blur_down(row + half, plane, y, width, height, down, half);
        blur_across(whole + (size_t)y * (size_t)width, row + half, width, across, half);
    }
    memcpy(plane, whole, count * sizeof *plane);
    return true;
}

int st_displacement_draw(struct st_displacement *out, struct st_rng *rng, const double alpha[2],
                         const double sigma[2], struct st_arena *arena, const char *op,
                         struct stoker_error *err)
{
    const uint64_t count = (uint64_t)out->width * (uint64_t)out->height;
    float **const planes[2] = {&out->right, &out->down};
    for (int k = 0; k < 2; k++) {
        const int32_t taps = st_displacement_taps(sigma[k]);
        float *plane = *planes[k] = st_arena_take(arena, count * sizeof *plane);
        if (!plane)
            return st_fail(err, STOKER_ENOMEM, "%s: no memory for a displacement of %d x %d pixels", op,
                           out->width, out->height);
        draw_noise(plane, count, rng);
        if (sigma[k] > 0 && (taps / 2 >= out->width || taps / 2 >= out->height))
            return st_fail(err, STOKER_EINVAL,
                           "%s: a blur of %d x %d is too large for an image of %d x %d", op, taps, taps,
                           out->width, out->height);
        if (sigma[k] > 0 && !blur(plane, out->width, out->height, taps, sigma, arena))
            return st_fail(err, STOKER_ENOMEM, "%s: no memory for a displacement of %d x %d pixels", op,
                           out->width, out->height);
        const float times = (float)(alpha[k] / 2);
        for (uint64_t i = 0; i < count; i++)
            plane[i] *= times;
    }
    return STOKER_OK;
}

/* ---- pixels ------------------------------------------------------------------------------------- */

static void mix_inside(const struct st_view *in, const struct st_pixel_place *p, uint8_t *out)
{
    const uint8_t *upper = st_pixel_at(in, p->x, p->y), *lower = upper + in->stride;
    const float left = 1 - p->right, above = 1 - p->down;
    const float w[4] = {left * above, p->right * above, left * p->down, p->right * p->down};
    for (int32_t c = 0; c < in->channels; c++)
        out[c] = st_pixel_rounded(upper[c] * w[0] + upper[c + in->channels] * w[1] + lower[c] * w[2] +
                                  lower[c + in->channels] * w[3]);
}

/* Near the border: pixels outside are black, and the part of the weight that lies inside blends the
 * result with the fill, as torchvision does it. */
static void mix_border(const struct st_view *in, const struct st_pixel_place *p, const uint8_t *fill,
                       uint8_t *out)
{
    const float across[2] = {1 - p->right, p->right}, down[2] = {1 - p->down, p->down};
    float share = 0, sum[4] = {0};
    for (int32_t k = 0; k < 4; k++) {
        const int32_t x = p->x + k % 2, y = p->y + k / 2;
        const float weight = across[k % 2] * down[k / 2];
        if (!st_pixel_inside(in, x, y))
            continue;
        share += weight;
        for (int32_t c = 0; c < in->channels; c++)
            sum[c] += weight * st_pixel_at(in, x, y)[c];
    }
    for (int32_t c = 0; c < in->channels; c++)
        out[c] = st_pixel_rounded((sum[c] - fill[c]) * share + fill[c]);
}

static void mix_row(const struct st_view *in, const float *right, const float *down, int32_t y,
                    const uint8_t *fill, uint8_t *out)
{
    for (int32_t x = 0; x < in->width; x++, out += in->channels) {
        const float step_x = floorf(right[x]), step_y = floorf(down[x]);
        const struct st_pixel_place p = {x + (int32_t)step_x, y + (int32_t)step_y, right[x] - step_x,
                                down[x] - step_y};
        if (p.x >= 0 && p.x < in->width - 1 && p.y >= 0 && p.y < in->height - 1)
            mix_inside(in, &p, out);
        else
            mix_border(in, &p, fill, out);
    }
}

static void choose_row(const struct st_view *in, const float *right, const float *down, int32_t y,
                       const uint8_t *fill, uint8_t *out)
{
    for (int32_t x = 0; x < in->width; x++, out += in->channels) {
        const int32_t from_x = (int32_t)rint((double)x + right[x]);
        const int32_t from_y = (int32_t)rint((double)y + down[x]);
        if (st_pixel_inside(in, from_x, from_y))
            memcpy(out, st_pixel_at(in, from_x, from_y), (size_t)in->channels);
        else
            memcpy(out, fill, (size_t)in->channels);
    }
}

/* ---- boxes -------------------------------------------------------------------------------------- */

static int32_t index_of(float at, int32_t count)
{
    return !(at > 0) ? 0 : at < (float)count ? (int32_t)at : count - 1;
}

/* The displacement says where pixels come from. Where they go is torchvision's estimate: as far to the
 * other side. */
static void displace_at(const struct st_displacement *d, const float from[2], float right, float down,
                        float to[2])
{
    const int32_t x = index_of(right, d->width), y = index_of(down, d->height);
    const size_t at = (size_t)y * (size_t)d->width + (size_t)x;
    to[0] = isnan(from[0]) ? from[0] : (float)x - d->right[at];
    to[1] = isnan(from[1]) ? from[1] : (float)y - d->down[at];
}

static void displace_point(const void *by, const float from[2], float to[2])
{
    displace_at(by, from, from[0], from[1], to);
}

static void displace_corner(const void *by, const float from[2], float to[2])
{
    displace_at(by, from, ceilf(from[0]), ceilf(from[1]), to);
}

static int displace_boxes(struct st_boxes *boxes, const struct st_displacement *by)
{
    st_boxes_map(boxes, displace_corner, by);
    st_points_map(boxes, displace_point, by);
    st_boxes_clamp(boxes, by->width, by->height);
    return STOKER_OK;
}

/* ---- images ------------------------------------------------------------------------------------- */

int st_image_displace(struct st_image *image, const struct st_displacement *by, struct st_displaced how,
                      const char *op, struct stoker_error *err)
{
    struct st_view in, out;
    if (image->boxes)
        return displace_boxes(image->boxes, by);
    const int rc = st_image_pixels(image, false, false, &in, err);
    if (rc < 0)
        return rc;
    if (image->numbers) {
        how.filter = ST_FILTER_NEAREST;
        st_image_number(image, how.mask_fill, how.fill);
    }
    if (!st_view_take(&out, &image->work->arena, in.width, in.height, in.channels))
        return st_fail(err, STOKER_ENOMEM, "%s: no memory for an image of %d x %d pixels", op, in.width,
                       in.height);
    for (int32_t y = 0; y < in.height; y++) {
        const size_t first = (size_t)y * (size_t)in.width;
        (how.filter == ST_FILTER_NEAREST ? choose_row : mix_row)(
            &in, by->right + first, by->down + first, y, how.fill, st_row(&out, y));
    }
    st_image_set(image, out, false);
    return STOKER_OK;
}
