/* What is left of pixels written as a JPEG and read again: libjpeg's bytes, for all qualities, many sizes, and every kind of
 * CPU; also of noise that our own code leaves to libjpeg.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/forward.h"
#include "codec/jpeg_recode.h"
#include "tap.h"

static uint32_t chance(uint32_t below)
{
    static uint32_t seed = 7;
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(seed >> 8) * below >> 24);
}

/* Of a block of its very size, so that the sanitizers see reads beyond it. */
static struct st_view paint(int32_t width, int32_t height, int32_t channels, uint32_t noise)
{
    struct st_view v = {malloc((size_t)width * (size_t)height * (size_t)channels), (ptrdiff_t)width * channels, width, height,
                        channels};
    for (int32_t y = 0; y < height; y++) {
        const uint32_t stripe = 0xC4 >> y % 8 & 1 ? 255 : 0; /* coefficients of one column, as large as they get */
        for (int32_t k = 0; k < width * channels; k++) {
            const uint32_t smooth = (uint32_t)(3 * k / channels + 2 * y + 50 * (k % channels)) & 255;
            st_row(&v, y)[k] = (uint8_t)(noise == 2 ? stripe : noise ? chance(256) : smooth);
        }
    }
    return v;
}

static bool same(const struct st_view *a, const struct st_view *b)
{
    bool same = a->width == b->width && a->height == b->height && a->channels == b->channels;
    for (int32_t y = 0; same && y < a->height; y++)
        same = !memcmp(st_row(a, y), st_row(b, y), (size_t)a->width * (size_t)a->channels);
    return same;
}

static uint32_t left_to_libjpeg;

/* For each kind of CPU, our own code agrees with libjpeg wherever it does not give up, and so does the whole. */
static bool check(const struct st_view *in, int32_t quality, bool swapped)
{
    struct st_arena arena = {0};
    struct stoker_error err = {0};
    struct st_view theirs, ours;
    bool good = st_jpeg_recode_by_libjpeg(in, quality, swapped, &arena, &theirs, &err) == STOKER_OK;
    for (enum st_cpu_level level = ST_CPU_C; good && level <= st_cpu_level(); level++) {
        const enum st_jpeg_reason reason = st_jpeg_there_and_back(in, quality, swapped, level, &arena, &ours);
        left_to_libjpeg += reason == ST_JPEG_RANGE;
        good = (reason == ST_JPEG_OURS || (reason == ST_JPEG_RANGE && quality < 20)) &&
               st_jpeg_recode(in, quality, swapped, level, &arena, &ours, &err) == STOKER_OK && same(&ours, &theirs);
        if (!good)
            note("%d x %d x %d, quality %d, %s: %s", in->width, in->height, in->channels, quality, st_cpu_level_name(level),
                 err.message);
    }
    st_arena_free(&arena);
    return good;
}

static void qualities(int32_t channels)
{
    bool good = true;
    for (int32_t quality = 1; quality <= 100; quality++)
        for (uint32_t noise = 0; noise < 3; noise++) {
            const struct st_view in = paint(40 + (int32_t)chance(40), 20 + (int32_t)chance(40), channels, noise);
            good = check(&in, quality, false) && good;
            free(in.data);
        }
    ok(good, "%d channel%s: every quality", channels, channels == 1 ? "" : "s");
}

static void sizes(int32_t channels)
{
    bool good = true;
    for (int32_t width = 1; width < 36; width += 1 + (width > 18))
        for (int32_t height = 1; height < 36; height += 1 + (height > 18) + (int32_t)chance(3)) {
            const struct st_view in = paint(width, height, channels, chance(2));
            good = check(&in, 1 + (int32_t)chance(100), chance(2)) && good;
            free(in.data);
        }
    ok(good, "%d channel%s: every size", channels, channels == 1 ? "" : "s");
}

static void large(void)
{
    const struct st_view in = paint(1201, 403, 3, 1), flat = paint(3, 1, 1, 1);
    struct st_view too_wide = flat, out;
    struct stoker_error err = {0};
    struct st_arena arena = {0};
    ok(check(&in, 77, true), "a large image, with red and blue in each other's places");
    too_wide.width = ST_JPEG_SIDE_MAX + 1;
    ok(st_jpeg_recode(&too_wide, 50, false, ST_CPU_C, &arena, &out, &err) == STOKER_ELIMIT, "%s", err.message);
    ok(st_jpeg_recode_by_libjpeg(&too_wide, 50, false, &arena, &out, &err) == STOKER_ELIMIT, "%s", err.message);
    free(in.data);
    free(flat.data);
    st_arena_free(&arena);
}

int main(void)
{
    qualities(1);
    qualities(3);
    sizes(1);
    sizes(3);
    large();
    ok(left_to_libjpeg > 0, "%u images were left to libjpeg", left_to_libjpeg);
    return done_testing();
}
