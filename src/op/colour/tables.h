/* tables.h - changes that replace each value by another, with the same results as Pillow
 *
 * Several of them become one table of 256 values for each channel, and the pixels are changed once. What
 * needs a histogram computes it from that of the pixels as they are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_COLOUR_TABLES_H
#define ST_OP_COLOUR_TABLES_H

#include "op/colour/colour.h"

/* A formula that gives some tables. Another one is as fast as any, but slower than these. */
struct st_table_formula {
    enum { ST_TABLE_ANY, ST_TABLE_FOLD, ST_TABLE_LINE } kind;
    uint32_t level;        /* fold: values from here on are inverted, 0 to 256, */
    uint8_t mask;          /* and then these bits stay */
    float mul[3], add[3];  /* line: of each channel, clipped and truncated */
};

struct st_tables {
    const struct st_colour_rows *rows;
    const struct st_view *pixels; /* of 1 or 3 channels; writable where the pixels are changed */
    uint8_t table[3][256];        /* of the changes so far */
    struct st_table_formula formula; /* of a single change; it may be a little wrong */
    bool changed;                 /* the tables are not those that change nothing */
    bool counted;
    uint64_t count_of[3][256]; /* the pixels' histograms, if counted */
};

void st_tables_begin(struct st_tables *tables, const struct st_colour_rows *rows,
                     const struct st_view *pixels);
void st_tables_brightness(struct st_tables *tables, float factor);
void st_tables_contrast(struct st_tables *tables, float factor);
void st_tables_solarize(struct st_tables *tables, uint32_t level);
void st_tables_posterize(struct st_tables *tables, uint32_t mask);
void st_tables_lighten(struct st_tables *tables, uint32_t added);
void st_tables_autocontrast(struct st_tables *tables);
void st_tables_equalize(struct st_tables *tables);
/* `next` has 256 values for each of three channels. */
void st_tables_replace(struct st_tables *tables, const uint8_t *next);
/* Changes the pixels. */
void st_tables_end(struct st_tables *tables);

/* Changes that rows are still to get: the cheapest way to do what the tables do. */
struct st_replacement {
    struct st_table_formula formula;
    const uint8_t (*table)[256]; /* those of st_tables, or a copy of them */
    int32_t channels;            /* 1: the same table for all of them */
};
struct st_replacement st_tables_replacement(const struct st_tables *tables);
/* `count` bytes of whole pixels; `out` may be `row`. */
void st_replacement_row(const struct st_replacement *how, const struct st_colour_rows *rows,
                        uint8_t *out, const uint8_t *row, size_t count);

/* The tables for the values of one channel, counted. */
void st_table_autocontrast(uint8_t table[256], const uint64_t count_of[256]);
void st_table_equalize(uint8_t table[256], const uint64_t count_of[256]);

#endif
