/* forward.c - what is left of pixels that are written as a JPEG and read again
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/forward.h"

#include "codec/jpeg/pixels.h"

enum { BLOCK = 8, KINDS = 2 }; /* of components: luminance and chroma, each with its table */

extern const struct st_jpeg_forward_rows st_jpeg_forward_rows_c;
#if defined(__x86_64__)
extern const struct st_jpeg_forward_rows st_jpeg_forward_rows_avx2, st_jpeg_forward_rows_avx512;
#endif

const struct st_jpeg_forward_rows *st_jpeg_forward_rows_for(enum st_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= ST_CPU_AVX512)
        return &st_jpeg_forward_rows_avx512;
    if (level >= ST_CPU_AVX2)
        return &st_jpeg_forward_rows_avx2;
#endif
    (void)level;
    return &st_jpeg_forward_rows_c;
}

/* ---- steps ------------------------------------------------------------------------------------- */

/* The example tables of the JPEG standard, which are libjpeg's of quality 50. */
static const uint8_t steps_of_50[KINDS][64] = {
    {16, 11, 10, 16, 24,  40,  51,  61,  12, 12, 14, 19, 26,  58,  60,  55,
     14, 13, 16, 24, 40,  57,  69,  56,  14, 17, 22, 29, 51,  87,  80,  62,
     18, 22, 37, 56, 68,  109, 103, 77,  24, 35, 55, 64, 81,  104, 113, 92,
     49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99},
    {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
     99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99},
};

static int32_t step_of(uint8_t of_50, int32_t quality)
{
    const int32_t percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;
    const int32_t step = (of_50 * percent + 50) / 100;
    return step < 1 ? 1 : step > 255 ? 255 : step;
}

struct forward {
    const struct st_jpeg_forward_rows *rows;
    const struct st_view *in;
    bool swapped;
    struct st_jpeg_frame frame;
    struct st_jpeg_scan scan;
    struct st_jpeg_pixels pixels;
    struct st_jpeg_plane plane[ST_JPEG_COMPONENTS_MAX]; /* the samples of one row of MCUs */
    uint8_t *whole[2][2];                               /* two rows of each chroma, not yet halved */
    float scale[KINDS][64], half[KINDS][64];
};

static void set_steps(struct forward *f, int32_t quality)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int k = 0; k < 64; k++) {
            const int at = st_jpeg_natural[k], step = step_of(steps_of_50[kind][at], quality);
            f->frame.steps[kind][k] = (uint16_t)step;
            f->scale[kind][at] = 1.f / (float)(8 * step);
            f->half[kind][at] = (float)(4 * step) + 0.5f;
        }
}

/* ---- samples ----------------------------------------------------------------------------------- */

static void set_frame(struct forward *f)
{
    struct st_jpeg_frame *frame = &f->frame;
    const uint32_t factor = f->in->channels == 3 ? 2 : 1;
    frame->width = (uint32_t)f->in->width;
    frame->height = (uint32_t)f->in->height;
    frame->components = (uint32_t)f->in->channels;
    frame->h = frame->v = factor;
    frame->mcus_across = (frame->width + BLOCK * factor - 1) / (BLOCK * factor);
    frame->mcus_down = (frame->height + BLOCK * factor - 1) / (BLOCK * factor);
    for (uint32_t c = 0; c < frame->components; c++) {
        const uint32_t own = c == 0 ? factor : 1, less = factor / own;
        frame->component[c] = (struct st_jpeg_component){
            .h = (uint8_t)own,
            .v = (uint8_t)own,
            .quant = c > 0,
            .width = (frame->width + less - 1) / less,
            .height = (frame->height + less - 1) / less,
        };
        frame->mcu_blocks += own * own;
    }
}

static bool take(struct forward *f, struct st_arena *arena)
{
    const struct st_jpeg_frame *frame = &f->frame;
    const size_t blocks = (size_t)frame->mcus_across * frame->mcu_blocks;
    bool all = true;
    for (uint32_t c = 0; c < frame->components; c++) {
        const uint32_t own = frame->component[c].h;
        f->plane[c].stride = (size_t)frame->mcus_across * own * BLOCK;
        f->plane[c].rows = own * BLOCK;
        f->plane[c].samples = st_arena_take(arena, f->plane[c].stride * f->plane[c].rows);
        all = all && f->plane[c].samples;
    }
    for (int k = 0; k < 4 && frame->components > 1; k++) {
        f->whole[k / 2][k % 2] = st_arena_take(arena, f->plane[0].stride);
        all = all && f->whole[k / 2][k % 2];
    }
    f->scan.mcus = st_arena_take(arena, frame->mcus_across * sizeof *f->scan.mcus);
    f->scan.coefs = st_arena_take(arena, blocks * 64 * sizeof *f->scan.coefs);
    f->scan.ends = st_arena_take(arena, blocks);
    if (!all || !f->scan.mcus || !f->scan.coefs || !f->scan.ends)
        return false;
    for (uint32_t column = 0; column < frame->mcus_across; column++)
        f->scan.mcus[column] =
            (struct st_jpeg_mcu){f->scan.coefs + (size_t)column * frame->mcu_blocks * 64,
                                 f->scan.ends + (size_t)column * frame->mcu_blocks};
    return true;
}

static uint8_t *plane_row(const struct forward *f, uint32_t c, uint32_t y)
{
    return f->plane[c].samples + y * f->plane[c].stride;
}

/* The last value fills the rest of the row. */
static void fill(const struct forward *f, uint8_t *row)
{
    memset(row + f->frame.width, row[f->frame.width - 1], f->plane[0].stride - f->frame.width);
}

/* Rows of all components for one row of MCUs; the last row of each fills what is below the image. */
static void read_rows(const struct forward *f, uint32_t mcu_row)
{
    const uint32_t count = f->plane[0].rows, top = mcu_row * count;
    const uint32_t there = f->frame.height - top < count ? f->frame.height - top : count;
    const size_t width = f->frame.width;
    for (uint32_t y = 0; y < count; y++) {
        uint8_t *luma = plane_row(f, 0, y), *cb = f->whole[0][y % 2], *cr = f->whole[1][y % 2];
        if (y >= there)
            memcpy(luma, luma - f->plane[0].stride, f->plane[0].stride);
        else if (f->frame.components == 1)
            memcpy(luma, st_row(f->in, (int32_t)(top + y)), width);
        else
            f->rows->split(luma, cb, cr, st_row(f->in, (int32_t)(top + y)), f->swapped, width);
        fill(f, luma);
        if (f->frame.components == 1)
            continue;
        for (uint32_t c = 0; c < 2; c++) {
            uint8_t *half = plane_row(f, 1 + c, y / 2), *const *whole = f->whole[c];
            if (y < there)
                fill(f, whole[y % 2]);
            if (y % 2 && y - 1 < there)
                f->rows->halve(half, whole[0], whole[y < there], f->plane[1 + c].stride);
            else if (y % 2)
                memcpy(half, half - f->plane[1 + c].stride, f->plane[1 + c].stride);
        }
    }
}

static void make_coefs(const struct forward *f)
{
    int16_t *coefs = f->scan.coefs;
    uint8_t *end = f->scan.ends;
    for (uint32_t column = 0; column < f->frame.mcus_across; column++)
        for (uint32_t c = 0; c < f->frame.components; c++) {
            const uint32_t own = f->frame.component[c].h;
            const size_t stride = f->plane[c].stride, kind = f->frame.component[c].quant;
            for (uint32_t k = 0; k < own * own; k++, coefs += 64)
                *end++ = f->rows->block(
                    coefs, plane_row(f, c, k / own * BLOCK) + ((size_t)column * own + k % own) * BLOCK,
                    stride, f->scale[kind], f->half[kind]);
        }
}

enum st_jpeg_reason st_jpeg_there_and_back(const struct st_view *in, int32_t quality, bool swapped,
                                           enum st_cpu_level level, struct st_arena *arena,
                                           struct st_view *out)
{
    struct forward *f = st_arena_take(arena, sizeof *f);
    if (!f)
        return ST_JPEG_MEMORY;
    memset(f, 0, sizeof *f);
    f->rows = st_jpeg_forward_rows_for(level);
    f->in = in;
    f->swapped = swapped;
    set_frame(f);
    set_steps(f, quality);
    f->scan.frame = &f->frame;
    f->scan.right = f->frame.mcus_across;
    f->scan.bottom = f->frame.mcus_down;
    f->pixels.kernels = st_jpeg_kernels_for(level);
    f->pixels.scan = &f->scan;
    f->pixels.region = (struct st_region){0, 0, f->frame.width, f->frame.height};
    enum st_jpeg_reason reason =
        take(f, arena) ? st_jpeg_pixels_begin(&f->pixels, arena) : ST_JPEG_MEMORY;
    for (uint32_t row = 0; row < f->frame.mcus_down && reason == ST_JPEG_OURS; row++) {
        read_rows(f, row);
        make_coefs(f);
        f->scan.band_top = row;
        reason = st_jpeg_pixels_row(&f->pixels, row);
    }
    *out = f->pixels.out;
    return reason;
}
