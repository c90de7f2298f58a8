/* clahe.c - contrast limited adaptive histogram equalisation with OpenCV's arithmetic
 *
 * Each tile has a table that makes its values about equally frequent, and each pixel gets the mean of
 * the tables of the four tiles that are nearest to it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/clahe.h"

#include "op/cv/cv.h"

#include <math.h>

enum { VALUES = 256 };

/* Along one side: tiles, their length, and for each pixel the tables left and right of it. */
struct axis {
    int32_t tiles, length, size;
    int32_t *mirrored; /* [tiles * length]: pixels of the image, which goes on mirrored */
    int32_t *before, *behind;
    float *share; /* of the tile behind */
};

static int32_t mirrored_at(int32_t at, int32_t size)
{
    while (size > 1 && at >= size)
        at = at < 2 * size - 1 ? 2 * (size - 1) - at : at - 2 * (size - 1);
    return size > 1 ? at : 0;
}

/* `more`: OpenCV adds pixels to both sides if one of them is not a multiple of the tiles. */
static bool make_axis(struct axis *axis, int32_t size, int32_t tiles, bool more, struct st_arena *arena)
{
    const int32_t whole = more ? size + tiles - size % tiles : size;
    *axis = (struct axis){.tiles = tiles, .length = whole / tiles, .size = size};
    axis->mirrored = st_arena_take(arena, (uint64_t)whole * sizeof *axis->mirrored);
    axis->before = st_arena_take(arena, (uint64_t)size * sizeof *axis->before);
    axis->behind = st_arena_take(arena, (uint64_t)size * sizeof *axis->behind);
    axis->share = st_arena_take(arena, (uint64_t)size * sizeof *axis->share);
    if (!axis->mirrored || !axis->before || !axis->behind || !axis->share)
        return false;
    for (int32_t k = 0; k < whole; k++)
        axis->mirrored[k] = mirrored_at(k, size);
    const float per_pixel = 1.f / (float)axis->length;
    for (int32_t k = 0; k < size; k++) {
        const float at = (float)k * per_pixel - 0.5f;
        const int32_t first = (int32_t)floorf(at);
        axis->share[k] = at - (float)first;
        axis->before[k] = first < 0 ? 0 : first;
        axis->behind[k] = first + 1 < tiles ? first + 1 : tiles - 1;
    }
    return true;
}

/* What is too much is spread over all values, and a rest over some at equal distances. */
static void limit(int32_t count_of[VALUES], int32_t most)
{
    int32_t surplus = 0;
    for (int v = 0; v < VALUES; v++)
        if (count_of[v] > most) {
            surplus += count_of[v] - most;
            count_of[v] = most;
        }
    for (int v = 0; v < VALUES; v++)
        count_of[v] += surplus / VALUES;
    int32_t rest = surplus % VALUES;
    const int32_t step = rest && VALUES / rest > 1 ? VALUES / rest : 1;
    for (int v = 0; v < VALUES && rest > 0; v += step, rest--)
        count_of[v]++;
}

static void make_table(uint8_t table[VALUES], const struct st_view *pixels, const struct axis *x,
                       const struct axis *y, int32_t column, int32_t row, double clip)
{
    const int32_t total = x->length * y->length;
    const float scale = (float)(VALUES - 1) / (float)total;
    int32_t count_of[VALUES] = {0}, sum = 0;
    for (int32_t j = row * y->length; j < (row + 1) * y->length; j++) {
        const uint8_t *in = st_row(pixels, y->mirrored[j]);
        for (int32_t i = column * x->length; i < (column + 1) * x->length; i++)
            count_of[in[x->mirrored[i] * pixels->channels]]++;
    }
    if (clip > 0) {
        const double most = clip * total / VALUES;
        limit(count_of, most < 1 ? 1 : most < total ? (int32_t)most : total);
    }
    for (int v = 0; v < VALUES; v++) {
        sum += count_of[v];
        const float value = rintf((float)sum * scale);
        table[v] = (uint8_t)(value < 255 ? value : 255);
    }
}

static void apply(const struct st_view *pixels, const struct axis *x, const struct axis *y,
                  const uint8_t (*tables)[VALUES])
{
    for (int32_t j = 0; j < pixels->height; j++) {
        const uint8_t(*upper)[VALUES] = tables + (ptrdiff_t)y->before[j] * x->tiles;
        const uint8_t(*lower)[VALUES] = tables + (ptrdiff_t)y->behind[j] * x->tiles;
        const float down = y->share[j], up = 1.f - down;
        uint8_t *value = st_row(pixels, j);
        for (int32_t i = 0; i < pixels->width; i++, value += pixels->channels) {
            const int32_t left = x->before[i], right = x->behind[i];
            const float to_right = x->share[i], to_left = 1.f - to_right;
            const float above = upper[left][*value] * to_left + upper[right][*value] * to_right;
            const float below = lower[left][*value] * to_left + lower[right][*value] * to_right;
            *value = (uint8_t)(int32_t)st_cv_round(above * up + below * down);
        }
    }
}

int st_cv_clahe(const struct st_view *pixels, double clip, int32_t across, int32_t down,
                struct st_arena *arena)
{
    const bool more = pixels->width % across || pixels->height % down;
    uint8_t(*tables)[VALUES] = st_arena_take(arena, (uint64_t)across * (uint64_t)down * sizeof *tables);
    struct axis x, y;
    if (!tables || !make_axis(&x, pixels->width, across, more, arena) ||
        !make_axis(&y, pixels->height, down, more, arena))
        return STOKER_ENOMEM;
    for (int32_t row = 0; row < down; row++)
        for (int32_t column = 0; column < across; column++)
            make_table(tables[row * across + column], pixels, &x, &y, column, row, clip);
    apply(pixels, &x, &y, (const uint8_t(*)[VALUES])tables);
    return STOKER_OK;
}
