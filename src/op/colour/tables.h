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

struct st_tables {
    const struct st_colour_rows *rows;
    const struct st_view *pixels; /* writable, of 1 or 3 channels */
    uint8_t table[3][256];        /* of the changes so far */
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

/* The tables for the values of one channel, counted. */
void st_table_autocontrast(uint8_t table[256], const uint64_t count_of[256]);
void st_table_equalize(uint8_t table[256], const uint64_t count_of[256]);

#endif
