/* pixels.c - converts coefficients to rows of RGB
 *
 * Works on one row of MCUs at a time, so that samples stay in the nearest cache. If chroma has half the
 * rows, a row of pixels also needs samples of the row below it, and waits for them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/pixels.h"

enum {
    BEFORE = 64, /* bytes before a row of samples: room for one sample, and alignment */
    BEHIND = 128,
    BLOCK = 8,
    WIDE_ENOUGH = 3, /* narrower components are repeated, not interpolated */
};

/* ---- planes ------------------------------------------------------------------------------------ */

static uint8_t *sample_row(const struct st_jpeg_plane *plane, uint32_t y)
{
    return plane->samples + (y % (2 * plane->rows)) * plane->stride;
}

static void set_steps(struct st_jpeg_quant *quant, const uint16_t steps[64])
{
    for (uint32_t k = 0; k < 64; k++) {
        const int16_t step = steps[k] < ST_JPEG_STEP_MAX ? (int16_t)steps[k] : ST_JPEG_STEP_MAX;
        quant->zigzag[k] = step;
        quant->natural[st_jpeg_natural[k]] = step;
    }
}

enum st_jpeg_reason st_jpeg_pixels_begin(struct st_jpeg_pixels *pixels, struct st_arena *arena)
{
    const struct st_jpeg_scan *scan = pixels->scan;
    const struct st_jpeg_frame *frame = scan->frame;
    const uint32_t columns = scan->right - scan->left;
    const uint64_t width = pixels->region.width, stride = st_align(3 * width, 64);
    for (uint32_t c = 0; c < frame->components; c++) {
        struct st_jpeg_plane *plane = &pixels->plane[c];
        const uint64_t blocks = st_align((uint64_t)columns * frame->component[c].h, ST_JPEG_GROUP);
        plane->rows = BLOCK * frame->component[c].v;
        plane->stride = BEFORE + st_align(blocks * BLOCK, 64) + BEHIND;
        plane->samples = st_arena_take(arena, plane->stride * plane->rows * 2 + BEFORE);
        if (!plane->samples)
            return ST_JPEG_MEMORY;
        plane->samples += BEFORE;
        set_steps(&pixels->quant[c], frame->steps[frame->component[c].quant]);
    }
    for (uint32_t c = 0; c < 2; c++)
        pixels->chroma[c] = st_arena_take(arena, width + BEHIND);
    pixels->blocks = st_arena_take(arena, (columns * frame->h + ST_JPEG_GROUP) * sizeof *pixels->blocks);
    pixels->out = (struct st_view){st_arena_take(arena, stride * pixels->region.height + 3 * 64),
                                   (ptrdiff_t)stride, (int32_t)width, (int32_t)pixels->region.height, 3};
    pixels->next_row = pixels->region.y;
    return pixels->chroma[0] && pixels->chroma[1] && pixels->blocks && pixels->out.data ? ST_JPEG_OURS
                                                                                        : ST_JPEG_MEMORY;
}

/* ---- samples ----------------------------------------------------------------------------------- */

/* The end of a list; pads the last group. */
static int32_t end_list(const struct st_jpeg_pixels *pixels, struct st_jpeg_block *end)
{
    for (uint32_t k = 0; k < ST_JPEG_GROUP; k++)
        end[k] = end[-1];
    return (int32_t)(end - pixels->blocks);
}

/* The needed blocks of one component in a row of blocks. */
static int32_t list_grid_row(const struct st_jpeg_pixels *pixels, const struct st_jpeg_grid *grid,
                             uint32_t row)
{
    const uint64_t *mask = st_jpeg_masks_at(grid, row, grid->left);
    const int16_t *coefs = st_jpeg_coefs_at(grid, row, grid->left);
    struct st_jpeg_block *to = pixels->blocks;
    for (uint32_t column = grid->left; column < grid->right; column++, coefs += 64)
        *to++ = (struct st_jpeg_block){coefs, 64 - (uint32_t)__builtin_clzll(*mask++ | 1)};
    return end_list(pixels, to);
}

/* The adjacent blocks of one component in a row of MCUs; `first` is the index of the leftmost in an
 * MCU. */
static int32_t list_blocks(const struct st_jpeg_pixels *pixels, const struct st_jpeg_mcu *mcus,
                           uint32_t first, uint32_t h)
{
    const uint32_t columns = pixels->scan->right - pixels->scan->left;
    struct st_jpeg_block *to = pixels->blocks;
    for (uint32_t column = 0; column < columns; column++)
        for (uint32_t k = first; k < first + h; k++)
            *to++ = (struct st_jpeg_block){mcus[column].coefs + k * 64, mcus[column].ends[k]};
    return end_list(pixels, to);
}

/* At the edges of the image, the outermost sample is its own neighbour. */
static void repeat_edges(const struct st_jpeg_pixels *pixels, uint32_t c, uint32_t mcu_row)
{
    const struct st_jpeg_scan *scan = pixels->scan;
    const struct st_jpeg_plane *plane = &pixels->plane[c];
    const uint32_t behind = scan->frame->component[c].width - scan->left * BLOCK;
    const bool ends_here = behind <= (scan->right - scan->left) * BLOCK;
    for (uint32_t y = 0; y < plane->rows; y++) {
        uint8_t *row = sample_row(plane, mcu_row * plane->rows + y);
        if (scan->left == 0)
            row[-1] = row[0];
        if (ends_here)
            row[behind] = row[behind - 1];
    }
}

static enum st_jpeg_reason transform_row(const struct st_jpeg_pixels *pixels, uint32_t mcu_row)
{
    const struct st_jpeg_scan *scan = pixels->scan;
    const struct st_jpeg_frame *frame = scan->frame;
    const size_t columns = scan->right - scan->left;
    uint32_t block = 0;
    for (uint32_t c = 0; c < frame->components; c++) {
        const struct st_jpeg_component *component = &frame->component[c];
        const struct st_jpeg_plane *plane = &pixels->plane[c];
        for (uint32_t y = 0; y < component->v; y++, block += component->h) {
            const int32_t count =
                pixels->grids
                    ? list_grid_row(pixels, &pixels->grids[c], mcu_row * component->v + y)
                    : list_blocks(pixels, scan->mcus + (mcu_row - scan->band_top) * columns, block,
                                  component->h);
            uint8_t *out = sample_row(plane, mcu_row * plane->rows + y * BLOCK);
            if (!pixels->kernels->transform(out, plane->stride, pixels->blocks, count,
                                            &pixels->quant[c]))
                return ST_JPEG_RANGE;
        }
        if (component->h < frame->h)
            repeat_edges(pixels, c, mcu_row);
    }
    return ST_JPEG_OURS;
}

/* ---- colours ----------------------------------------------------------------------------------- */

/* A row of one chroma component, upsampled if it has fewer samples than the image has pixels. */
static const uint8_t *chroma_row(const struct st_jpeg_pixels *pixels, uint32_t c, uint32_t y)
{
    const struct st_jpeg_frame *frame = pixels->scan->frame;
    const struct st_jpeg_kernels *kernels = pixels->kernels;
    const struct st_jpeg_plane *plane = &pixels->plane[c];
    const uint32_t h = frame->h, v = frame->v, x = pixels->region.x, width = pixels->region.width;
    const uint32_t first = x / h - pixels->scan->left * BLOCK;
    const int32_t count = (int32_t)((x + width - 1) / h - x / h + 1);
    const uint32_t last = frame->component[c].height - 1, near = y / v;
    const uint32_t far = y % 2 ? (near < last ? near + 1 : last) : (near > 0 ? near - 1 : 0);
    const uint8_t *row = sample_row(plane, near) + first;
    uint8_t *out = pixels->chroma[c - 1];
    if (h == 1 && v == 1)
        return row;
    if (h == 2 && frame->component[c].width < WIDE_ENOUGH)
        for (uint32_t k = 0; k < width; k++)
            out[k + x % 2] = row[(x % 2 + k) / 2];
    else if (h == 2 && v == 1)
        kernels->h2v1(out, row, count);
    else if (h == 2)
        kernels->h2v2(out, row, sample_row(plane, far) + first, count);
    else
        kernels->h1v2(out, row, sample_row(plane, far) + first, y % 2 ? 2 : 1, count);
    return out + x % h;
}

static void write_row(const struct st_jpeg_pixels *pixels, uint32_t y)
{
    const struct st_jpeg_scan *scan = pixels->scan;
    const struct st_region *region = &pixels->region;
    uint8_t *out = st_row(&pixels->out, (int32_t)(y - region->y));
    const uint8_t *first =
        sample_row(&pixels->plane[0], y) + region->x - scan->left * BLOCK * scan->frame->h;
    if (scan->frame->components == 1) {
        pixels->kernels->grey(out, first, (int32_t)region->width);
        return;
    }
    const uint8_t *second = chroma_row(pixels, 1, y), *third = chroma_row(pixels, 2, y);
    if (scan->frame->rgb)
        st_jpeg_interleave(out, first, second, third, (int32_t)region->width);
    else
        pixels->kernels->ycc(out, first, second, third, (int32_t)region->width);
}

enum st_jpeg_reason st_jpeg_pixels_row(struct st_jpeg_pixels *pixels, uint32_t mcu_row)
{
    const struct st_jpeg_scan *scan = pixels->scan;
    const uint32_t waiting = scan->frame->v - 1, region_end = pixels->region.y + pixels->region.height;
    const uint32_t complete = (mcu_row + 1) * BLOCK * scan->frame->v - waiting;
    const uint32_t end = mcu_row + 1 == scan->bottom || region_end < complete ? region_end : complete;
    const enum st_jpeg_reason reason = transform_row(pixels, mcu_row);
    if (reason != ST_JPEG_OURS)
        return reason;
    for (; pixels->next_row < end; pixels->next_row++)
        write_row(pixels, pixels->next_row);
    return ST_JPEG_OURS;
}
