/* Any chain of crops, resizes, borders, flips, colours and warps gives the same image whether each of them
 * is done at once or all are recorded first. */
#include "op_line.h"
#include "variants.h"

#include "op/geometry/border.h"
#include "op/geometry/warp.h"

#include <math.h>

enum { STEPS_MAX = 8, SIDE_MAX = 48 };

static double uniform(uint64_t *seed, double low, double high)
{
    return low + (high - low) * (chance(seed) / 4294967296.0);
}

static int any_colour(struct st_image *image, uint64_t *seed, struct stoker_error *err)
{
    static const enum st_pending_kind kinds[] = {
        ST_PENDING_BRIGHTNESS, ST_PENDING_CONTRAST,  ST_PENDING_SATURATION,   ST_PENDING_HUE,
        ST_PENDING_GREY,       ST_PENDING_SHARPNESS, ST_PENDING_AUTOCONTRAST, ST_PENDING_EQUALIZE,
        ST_PENDING_SOLARIZE,   ST_PENDING_POSTERIZE, ST_PENDING_PERMUTE};
    struct st_pending op = {.kind = kinds[chance(seed) % (sizeof kinds / sizeof *kinds)]};
    op.factor = (float)uniform(seed, op.kind == ST_PENDING_HUE ? -0.5 : 0, op.kind == ST_PENDING_HUE ? 0.5 : 2);
    op.level = op.kind == ST_PENDING_SOLARIZE    ? chance(seed) % 257
               : op.kind == ST_PENDING_POSTERIZE ? st_posterize_mask((int32_t)(chance(seed) % 9))
                                                 : 0x102;
    return st_image_do(image, op, err);
}

static int any_warp(struct st_image *image, uint64_t *seed, struct stoker_error *err)
{
    const double width = st_image_width(image), height = st_image_height(image);
    const double turn = uniform(seed, -1, 1), scale = uniform(seed, 0.4, 1.8);
    const uint32_t bits = chance(seed);
    struct st_warp warp = {.kind = bits & 1 ? ST_WARP_AFFINE : ST_WARP_PERSPECTIVE,
                           .width = (int32_t)width,
                           .height = (int32_t)height,
                           .filter = bits & 2 ? ST_FILTER_NEAREST : bits & 4 ? ST_FILTER_BILINEAR : ST_FILTER_BICUBIC,
                           .fill = {9, 90, 200},
                           .mask_fill = 3};
    const double map[8] = {cos(turn) * scale, -sin(turn) * scale, uniform(seed, -width, width) / 2,
                           sin(turn) * scale, cos(turn) * scale, uniform(seed, -height, height) / 2,
                           uniform(seed, -0.01, 0.01), uniform(seed, -0.01, 0.01)};
    memcpy(warp.map, map, sizeof map);
    if (bits & 8)
        warp.map[1] = warp.map[3] = 0;
    if (bits & 16) { /* moved by whole pixels */
        const double moved[6] = {1, 0, floor(map[2]), 0, 1, floor(map[5])};
        memcpy(warp.map, moved, sizeof moved);
    }
    if (bits >> 5 & 1) { /* another size */
        warp.width = between(seed, 1, SIDE_MAX);
        warp.height = between(seed, 1, SIDE_MAX);
    }
    return st_image_warp(image, &warp, "warp", err);
}

static int any_border(struct st_image *image, uint64_t *seed, struct stoker_error *err)
{
    const struct st_border border = {.fill = {.count = 3, .value = {1, 2, 255}},
                                     .mode = (int32_t)(chance(seed) % 4), .mask_fill = 7};
    struct st_sides sides[2] = {{0}};
    int32_t width = st_image_width(image), height = st_image_height(image);
    for (int k = 0; k < 2; k++) {
        sides[k] = (struct st_sides){between(seed, 0, 9), between(seed, 0, 9), between(seed, 0, 9),
                                     between(seed, 0, 9)};
        width += sides[k].left + sides[k].right;
        height += sides[k].top + sides[k].bottom;
    }
    struct st_region window = {.width = 1 + chance(seed) % (uint32_t)width, .height = 1 + chance(seed) % (uint32_t)height};
    window.x = chance(seed) % ((uint32_t)width - window.width + 1);
    window.y = chance(seed) % ((uint32_t)height - window.height + 1);
    return st_image_pad(image, &border, sides, 2, chance(seed) & 1 ? &window : NULL, "pad", err);
}

static int any_crop(struct st_image *image, uint64_t *seed, struct stoker_error *err)
{
    const uint32_t width = (uint32_t)st_image_width(image), height = (uint32_t)st_image_height(image);
    struct st_region r = {.width = 1 + chance(seed) % width, .height = 1 + chance(seed) % height};
    r.x = chance(seed) % (width - r.width + 1);
    r.y = chance(seed) % (height - r.height + 1);
    return st_image_crop(image, r, err);
}

static int any_step(struct st_image *image, uint64_t *seed, struct stoker_error *err)
{
    switch (chance(seed) % 8) {
    case 0: st_image_mirror(image); return STOKER_OK;
    case 1: st_image_flip(image); return STOKER_OK;
    case 2: return any_crop(image, seed, err);
    case 3: return any_border(image, seed, err);
    case 4:
        return st_image_resize(image, between(seed, 1, SIDE_MAX), between(seed, 1, SIDE_MAX),
                               (enum st_filter)(chance(seed) % ST_FILTERS), err);
    case 5: return any_warp(image, seed, err);
    case 6: return st_image_transpose(image, "transpose", err);
    default: return any_colour(image, seed, err);
    }
}

/* The image of a chain; a copy of its bytes. NULL: it failed. */
static uint8_t *chain(struct st_work *work, uint64_t seed, struct st_view in, bool at_once, bool mask,
                      struct st_view *out)
{
    struct stoker_error err = {0};
    struct st_numbers numbers;
    struct st_image image;
    st_image_wrap(&image, work, in);
    if (mask)
        st_image_is_mask(&image, &numbers);
    int rc = STOKER_OK;
    for (uint32_t steps = 1 + chance(&seed) % STEPS_MAX; rc >= 0 && steps; steps--) {
        rc = any_step(&image, &seed, &err);
        if (rc >= 0 && at_once)
            rc = st_image_pixels(&image, false, false, out, &err);
    }
    if (rc >= 0)
        rc = st_image_pixels(&image, false, false, out, &err);
    if (rc < 0) {
        note("%s", err.message);
        return NULL;
    }
    const size_t row = (size_t)out->width * (size_t)out->channels;
    uint8_t *bytes = exactly(row * (size_t)out->height);
    for (int32_t y = 0; y < out->height; y++)
        memcpy(bytes + (size_t)y * row, st_row(out, y), row);
    return bytes;
}

static bool same(struct st_work *work, uint64_t seed, bool mask)
{
    const int32_t width = between(&seed, 1, SIDE_MAX), height = between(&seed, 1, SIDE_MAX);
    const size_t size = (size_t)width * (size_t)height * 3;
    uint8_t *pixels = random_bytes(&seed, size), *before = exactly(size);
    const struct st_view in = {pixels, 3 * width, width, height, 3};
    struct st_view a = {0}, b = {0};
    memcpy(before, pixels, size);
    st_arena_reset(&work->arena);
    uint8_t *one = chain(work, seed, in, true, mask, &a), *other = chain(work, seed, in, false, mask, &b);
    const bool equal = one && other && a.width == b.width && a.height == b.height &&
                       !memcmp(one, other, (size_t)a.width * (size_t)a.height * 3) &&
                       !memcmp(before, pixels, size);
    free(one);
    free(other);
    free(pixels);
    free(before);
    return equal;
}

int main(void)
{
    const uint32_t count = share_of(6000);
    struct st_work work = work_make(st_cpu_level());
    for (int mask = 0; mask < 2; mask++) {
        uint32_t differ = 0;
        for (uint64_t seed = 1; seed <= count; seed++)
            if (!same(&work, seed * 0x9e3779b97f4a7c15, mask) && differ++ < 3)
                note("chain %u differs", (unsigned)seed);
        ok(!differ, "%u chains of steps on %s (%u differ)", count, mask ? "masks" : "images", differ);
    }
    work_free(&work);
    return done_testing();
}
