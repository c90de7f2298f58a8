/* tables.c - changes that replace each value by another, with the same results as Pillow
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/colour/tables.h"

#include <string.h>

static void change_nothing(struct st_tables *tables)
{
    for (int32_t c = 0; c < 3; c++)
        for (int32_t v = 0; v < 256; v++)
            tables->table[c][v] = (uint8_t)v;
    tables->changed = tables->counted = false;
    tables->formula = (struct st_table_formula){.kind = ST_TABLE_ANY};
}

void st_tables_begin(struct st_tables *tables, const struct st_colour_rows *rows,
                     const struct st_view *pixels)
{
    tables->rows = rows;
    tables->pixels = pixels;
    change_nothing(tables);
}

/* ---- changing rows ------------------------------------------------------------------------------- */

static bool gives(const struct st_colour_rows *rows, const struct st_table_formula *formula,
                  const uint8_t (*table)[256], int32_t channels)
{
    uint8_t values[3 * 256];
    const struct st_replacement how = {*formula, table, channels};
    for (int32_t v = 0; v < 256; v++)
        for (int32_t c = 0; c < channels; c++)
            values[v * channels + c] = (uint8_t)v;
    st_replacement_row(&how, rows, values, values, 256 * (size_t)channels);
    for (int32_t v = 0; v < 256; v++)
        for (int32_t c = 0; c < channels; c++)
            if (values[v * channels + c] != table[c][v])
                return false;
    return true;
}

struct st_replacement st_tables_replacement(const struct st_tables *tables)
{
    const uint8_t(*table)[256] = tables->table;
    const bool alike = tables->pixels->channels == 1 ||
                       (!memcmp(table[0], table[1], 256) && !memcmp(table[0], table[2], 256));
    struct st_replacement how = {tables->formula, table, alike ? 1 : 3};
    if (how.formula.kind == ST_TABLE_FOLD) /* is never wrong */
        return how;
    /* A line that was rounded otherwise is right once it lies a little higher or lower. */
    static const float nudges[] = {0, 1.0f / 8192, -1.0f / 8192};
    const bool line = how.formula.kind == ST_TABLE_LINE;
    const int tries = line && tables->rows->line_is_fast ? 3 : 0;
    for (int k = 0; k < tries; k++) {
        for (int32_t c = 0; c < 3; c++)
            how.formula.add[c] = tables->formula.add[c] + nudges[k];
        if (gives(tables->rows, &how.formula, table, how.channels))
            return how;
    }
    how.formula.kind = ST_TABLE_ANY;
    return how;
}

void st_replacement_row(const struct st_replacement *how, const struct st_colour_rows *rows,
                        uint8_t *out, const uint8_t *row, size_t count)
{
    const struct st_table_formula *f = &how->formula;
    const size_t channels = (size_t)how->channels;
    if (f->kind == ST_TABLE_FOLD)
        rows->fold(out, row, count, f->level, f->mask);
    else if (f->kind == ST_TABLE_LINE)
        rows->line(out, row, count, how->channels, f->mul, f->add);
    else
        rows->replace(out, row, count / channels, how->channels, how->table);
}

void st_tables_end(struct st_tables *tables)
{
    const struct st_view *pixels = tables->pixels;
    if (!tables->changed)
        return;
    const struct st_replacement how = st_tables_replacement(tables);
    for (int32_t y = 0; y < pixels->height; y++)
        st_replacement_row(&how, tables->rows, st_row(pixels, y), st_row(pixels, y),
                           (size_t)pixels->width * (size_t)pixels->channels);
    change_nothing(tables);
}

/* ---- changes ------------------------------------------------------------------------------------- */

/* Notes that the tables are about to change; whether it is the first time, so that a formula of this
 * change is one of the tables. */
static bool first_change(struct st_tables *tables)
{
    const bool first = !tables->changed;
    tables->changed = true;
    tables->formula.kind = ST_TABLE_ANY;
    return first;
}

/* Adds a change that is the same for all channels. */
static void then(struct st_tables *tables, const uint8_t next[256])
{
    for (int32_t c = 0; c < 3; c++)
        for (int32_t v = 0; v < 256; v++)
            tables->table[c][v] = next[tables->table[c][v]];
}

static void then_fold(struct st_tables *tables, uint32_t level, uint32_t mask)
{
    uint8_t next[256];
    for (uint32_t v = 0; v < 256; v++)
        next[v] = (uint8_t)((v < level ? v : 255 - v) & mask);
    if (first_change(tables))
        tables->formula =
            (struct st_table_formula){.kind = ST_TABLE_FOLD, .level = level, .mask = (uint8_t)mask};
    then(tables, next);
}

static void set_line(struct st_tables *tables, int32_t channel, double mul, double add)
{
    const double most = 1 << 20; /* values remain integers of 32 bits */
    if (!(mul > -most && mul < most && add > -256 * most && add < 256 * most))
        return;
    tables->formula.kind = ST_TABLE_LINE;
    tables->formula.mul[channel] = (float)mul;
    tables->formula.add[channel] = (float)add;
}

static void then_blend(struct st_tables *tables, float level, float factor)
{
    if (first_change(tables))
        for (int32_t c = 0; c < 3; c++)
            set_line(tables, c, factor, level * (1 - (double)factor));
    tables->rows->blend(tables->table[0], sizeof tables->table, level, factor);
}

void st_tables_brightness(struct st_tables *tables, float factor) { then_blend(tables, 0, factor); }

void st_tables_contrast(struct st_tables *tables, float factor)
{
    st_tables_end(tables);
    then_blend(tables, st_colour_mean(tables->rows, tables->pixels), factor);
}

void st_tables_solarize(struct st_tables *tables, uint32_t level) { then_fold(tables, level, 255); }

void st_tables_posterize(struct st_tables *tables, uint32_t mask) { then_fold(tables, 256, mask); }

void st_tables_lighten(struct st_tables *tables, uint32_t added)
{
    uint8_t next[256];
    for (uint32_t v = 0; v < 256; v++)
        next[v] = (uint8_t)(v < 128 ? v + added : v);
    first_change(tables);
    then(tables, next);
}

void st_tables_replace(struct st_tables *tables, const uint8_t *next)
{
    for (int32_t c = 0; c < 3; c++)
        for (int32_t v = 0; v < 256; v++)
            tables->table[c][v] = next[c * 256 + tables->table[c][v]];
    first_change(tables);
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

/* Where values are not replaced yet, the lowest and the highest of each channel are all that counts. */
static void then_autocontrast(struct st_tables *tables)
{
    const struct st_view *pixels = tables->pixels;
    uint8_t low[3] = {255, 255, 255}, high[3] = {0};
    tables->rows->extent(pixels, low, high);
    first_change(tables);
    for (int32_t c = 0; c < pixels->channels; c++) {
        uint64_t count_of[256] = {0};
        count_of[low[c]] = count_of[high[c]] = 1;
        st_table_autocontrast(tables->table[c], count_of);
        const double scale = high[c] > low[c] ? 255.0 / (high[c] - low[c]) : 1;
        set_line(tables, c, scale, high[c] > low[c] ? -low[c] * scale : 0);
    }
}

static void then_for_histogram(struct st_tables *tables,
                               void (*make)(uint8_t table[256], const uint64_t count_of[256]))
{
    if (!tables->counted)
        tables->rows->histogram(tables->pixels, tables->count_of);
    tables->counted = true;
    first_change(tables);
    for (int32_t c = 0; c < tables->pixels->channels; c++) {
        uint64_t count_of[256] = {0}; /* after the changes so far */
        uint8_t next[256], *table = tables->table[c];
        for (int32_t v = 0; v < 256; v++)
            count_of[table[v]] += tables->count_of[c][v];
        make(next, count_of);
        for (int32_t v = 0; v < 256; v++)
            table[v] = next[table[v]];
    }
}

void st_tables_autocontrast(struct st_tables *tables)
{
    if (tables->changed)
        then_for_histogram(tables, st_table_autocontrast);
    else
        then_autocontrast(tables);
}

void st_tables_equalize(struct st_tables *tables) { then_for_histogram(tables, st_table_equalize); }
