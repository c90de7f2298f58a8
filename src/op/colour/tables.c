/* tables.c - changes that replace each value by another, with the same results as Pillow
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/colour/tables.h"

static void change_nothing(struct st_tables *tables)
{
    for (int32_t c = 0; c < 3; c++)
        for (int32_t v = 0; v < 256; v++)
            tables->table[c][v] = (uint8_t)v;
    tables->changed = tables->counted = false;
}

void st_tables_begin(struct st_tables *tables, const struct st_colour_rows *rows,
                     const struct st_view *pixels)
{
    tables->rows = rows;
    tables->pixels = pixels;
    change_nothing(tables);
}

void st_tables_end(struct st_tables *tables)
{
    const struct st_view *pixels = tables->pixels;
    const uint8_t(*table)[256] = (const uint8_t(*)[256])tables->table;
    size_t count = (size_t)pixels->width;
    int32_t channels = pixels->channels;
    if (!tables->changed)
        return;
    if (channels == 3 && !memcmp(table[0], table[1], 256) && !memcmp(table[0], table[2], 256)) {
        count *= 3;
        channels = 1;
    }
    for (int32_t y = 0; y < pixels->height; y++)
        tables->rows->replace(st_row(pixels, y), count, channels, table);
    change_nothing(tables);
}

/* Adds a change that is the same for all channels. */
static void then(struct st_tables *tables, const uint8_t next[256])
{
    for (int32_t c = 0; c < 3; c++)
        for (int32_t v = 0; v < 256; v++)
            tables->table[c][v] = next[tables->table[c][v]];
    tables->changed = true;
}

static void then_blend(struct st_tables *tables, float level, float factor)
{
    tables->rows->blend(tables->table[0], sizeof tables->table, level, factor);
    tables->changed = true;
}

void st_tables_brightness(struct st_tables *tables, float factor) { then_blend(tables, 0, factor); }

void st_tables_contrast(struct st_tables *tables, float factor)
{
    st_tables_end(tables);
    then_blend(tables, st_colour_mean(tables->rows, tables->pixels), factor);
}

void st_tables_solarize(struct st_tables *tables, uint32_t level)
{
    uint8_t next[256];
    for (uint32_t v = 0; v < 256; v++)
        next[v] = (uint8_t)(v < level ? v : 255 - v);
    then(tables, next);
}

void st_tables_posterize(struct st_tables *tables, uint32_t mask)
{
    uint8_t next[256];
    for (uint32_t v = 0; v < 256; v++)
        next[v] = (uint8_t)(v & mask);
    then(tables, next);
}

void st_tables_lighten(struct st_tables *tables, uint32_t added)
{
    uint8_t next[256];
    for (uint32_t v = 0; v < 256; v++)
        next[v] = (uint8_t)(v < 128 ? v + added : v);
    then(tables, next);
}

void st_tables_replace(struct st_tables *tables, const uint8_t *next)
{
    for (int32_t c = 0; c < 3; c++)
        for (int32_t v = 0; v < 256; v++)
            tables->table[c][v] = next[c * 256 + tables->table[c][v]];
    tables->changed = true;
}

/* ---- histograms ---------------------------------------------------------------------------------- */

void st_table_autocontrast(uint8_t table[256], const uint64_t count_of[256])
{
    int32_t low = 0, high = 255;
    while (low < 255 && !count_of[low])
        low++;
    while (high > 0 && !count_of[high])
        high--;
    const bool narrow = high <= low;
    const double scale = narrow ? 1 : 255.0 / (high - low), offset = narrow ? 0 : -low * scale;
    for (int32_t v = 0; v < 256; v++) {
        const double to = v * scale + offset;
        table[v] = (uint8_t)(int32_t)(to < 0 ? 0 : to > 255 ? 255 : to);
    }
}

void st_table_equalize(uint8_t table[256], const uint64_t count_of[256])
{
    uint64_t total = 0, last = 0;
    for (int32_t v = 0; v < 256; v++) {
        total += count_of[v];
        last = count_of[v] ? count_of[v] : last;
    }
    const uint64_t step = (total - last) / 255;
    uint64_t below = step / 2;
    for (uint32_t v = 0; v < 256; v++) {
        const uint64_t to = step ? below / step : v;
        table[v] = (uint8_t)(to > 255 ? 255 : to);
        below += count_of[v];
    }
}

static void then_for_histogram(struct st_tables *tables,
                               void (*make)(uint8_t table[256], const uint64_t count_of[256]))
{
    if (!tables->counted)
        tables->rows->histogram(tables->pixels, tables->count_of);
    tables->counted = true;
    for (int32_t c = 0; c < tables->pixels->channels; c++) {
        uint64_t count_of[256] = {0}; /* after the changes so far */
        uint8_t next[256], *table = tables->table[c];
        for (int32_t v = 0; v < 256; v++)
            count_of[table[v]] += tables->count_of[c][v];
        make(next, count_of);
        for (int32_t v = 0; v < 256; v++)
            table[v] = next[table[v]];
    }
    tables->changed = true;
}

void st_tables_autocontrast(struct st_tables *tables)
{
    then_for_histogram(tables, st_table_autocontrast);
}

void st_tables_equalize(struct st_tables *tables) { then_for_histogram(tables, st_table_equalize); }
