/* op_gaussian_blur.c - blurs by a random amount
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

#include <math.h>
#include <string.h>

struct gaussian_blur {
    struct st_list kernel_size, sigma;
    int32_t across, down; /* taps */
};

static const struct st_param params[] = {
    {.name = "kernel_size",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct gaussian_blur, kernel_size),
     .min = 1,
     .max = 65535,
     .required = true,
     .help = "odd: horizontal and vertical, or both at once"},
    {.name = "sigma",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct gaussian_blur, sigma),
     .min = 1e-6,
     .max = 1e6,
     .help = "the blur's radius, or low and high (0.1, 2)"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct gaussian_blur *b = self;
    int rc = st_plan_bytes(shape, finish, "gaussian_blur", err);
    if (rc >= 0)
        rc = st_param_size(&b->kernel_size, "gaussian_blur", "kernel_size", &b->across, &b->down, err);
    if (rc < 0)
        return rc;
    if (b->across % 2 == 0 || b->down % 2 == 0)
        return st_fail(err, STOKER_EINVAL, "gaussian_blur: kernel_size should be odd, not %d x %d",
                       b->across, b->down);
    if (b->sigma.count == 1)
        b->sigma = (struct st_list){.count = 2, .value = {b->sigma.value[0], b->sigma.value[0]}};
    return st_param_range(&b->sigma, "gaussian_blur", "sigma", 0.1, 2.0, err);
}

/* The middle weight and those on one side of it, of a kernel that sums up to 1. */
static float *half_kernel(int32_t taps, double sigma, struct st_arena *arena)
{
    const int32_t half = taps / 2;
    float *weight = st_arena_take(arena, (uint64_t)(half + 1) * sizeof *weight);
    double sum = 0;
    for (int32_t i = half; weight && i >= 0; i--) {
        weight[i] = (float)exp(-0.5 * (i / sigma) * (i / sigma));
        sum += i ? 2 * weight[i] : weight[i];
    }
    for (int32_t i = 0; weight && i <= half; i++)
        weight[i] = (float)(weight[i] / sum);
    return weight;
}

/* Inside, or as far inside as it lies outside. */
static int32_t reflected(int32_t i, int32_t count)
{
    return i < 0 ? -i : i >= count ? 2 * (count - 1) - i : i;
}

/* One row, blurred downwards. */
static void blur_down(float *restrict out, const struct st_view *in, int32_t y, const float *weight,
                      int32_t half)
{
    const ptrdiff_t count = (ptrdiff_t)in->width * in->channels;
    const uint8_t *middle = st_row(in, y);
    for (ptrdiff_t i = 0; i < count; i++)
        out[i] = weight[0] * middle[i];
    for (int32_t k = 1; k <= half; k++) {
        const uint8_t *above = st_row(in, reflected(y - k, in->height));
        const uint8_t *below = st_row(in, reflected(y + k, in->height));
        const float w = weight[k];
        for (ptrdiff_t i = 0; i < count; i++)
            out[i] += w * (float)(above[i] + below[i]);
    }
}

/* And sideways: `row` is continued on both ends. */
static void blur_across(uint8_t *restrict out, float *restrict sum, const float *restrict row,
                        ptrdiff_t count, int32_t channels, const float *weight, int32_t half)
{
    for (ptrdiff_t i = 0; i < count; i++)
        sum[i] = weight[0] * row[i];
    for (int32_t k = 1; k <= half; k++) {
        const float *left = row - (ptrdiff_t)k * channels, *right = row + (ptrdiff_t)k * channels;
        const float w = weight[k];
        for (ptrdiff_t i = 0; i < count; i++)
            sum[i] += w * (left[i] + right[i]);
    }
    for (ptrdiff_t i = 0; i < count; i++)
        out[i] = (uint8_t)(int32_t)(sum[i] + 0.5f);
}

static void continue_ends(float *row, int32_t width, int32_t channels, int32_t half)
{
    const size_t pixel = (size_t)channels * sizeof *row;
    for (int32_t k = 1; k <= half; k++) {
        memcpy(row - (ptrdiff_t)k * channels, row + (ptrdiff_t)k * channels, pixel);
        memcpy(row + (ptrdiff_t)(width - 1 + k) * channels, row + (ptrdiff_t)(width - 1 - k) * channels,
               pixel);
    }
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct gaussian_blur *b = self;
    const double sigma = st_rng_range(rng, b->sigma.value[0], b->sigma.value[1]);
    struct st_arena *arena = &image->work->arena;
    struct st_view in, out;
    const int rc = st_image_pixels(image, false, true, &in, err);
    if (rc < 0)
        return rc;
    const int32_t half_across = b->across / 2, half_down = b->down / 2;
    if (half_across >= in.width || half_down >= in.height)
        return st_fail(err, STOKER_EINVAL,
                       "gaussian_blur: a kernel of %d x %d is too large for an image of "
                       "%d x %d",
                       b->across, b->down, in.width, in.height);

    const ptrdiff_t count = (ptrdiff_t)in.width * in.channels;
    const ptrdiff_t border = (ptrdiff_t)half_across * in.channels;
    float *across = half_kernel(b->across, sigma, arena), *down = half_kernel(b->down, sigma, arena);
    float *row = st_arena_take(arena, (uint64_t)(count + 2 * border) * sizeof *row);
    float *sum = st_arena_take(arena, (uint64_t)count * sizeof *sum);
    if (!across || !down || !row || !sum || !st_view_take(&out, arena, in.width, in.height, in.channels))
        return st_fail(err, STOKER_ENOMEM, "no memory for an image of %d x %d pixels", in.width,
                       in.height);
    for (int32_t y = 0; y < in.height; y++) {
        blur_down(row + border, &in, y, down, half_down);
        continue_ends(row + border, in.width, in.channels, half_across);
        blur_across(st_row(&out, y), sum, row + border, count, in.channels, across, half_across);
    }
    st_image_set(image, out, true);
    return STOKER_OK;
}

const struct st_op st_op_gaussian_blur = {
    .name = "gaussian_blur",
    .help = "blurs by a random amount",
    .self_size = sizeof(struct gaussian_blur),
    .params = params,
    .plan = plan,
    .run = run,
};
