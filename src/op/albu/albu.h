/* albu.h - what the ops that change values as Albumentations does share
 *
 * They have Albumentations' parameters and give its bytes, which are partly those of OpenCV: the Python
 * package compares them with the libraries that are installed before it uses them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_ALBU_ALBU_H
#define ST_OP_ALBU_ALBU_H

#include "op/op.h"

/* Masks keep their numbers, and boxes have no values. */
static inline bool st_albu_changes(const struct st_image *image)
{
    return !image->numbers && !image->boxes;
}

/* One number from a range that st_param_range has checked. */
static inline double st_albu_draw(const struct st_list *range, struct st_rng *rng)
{
    return st_rng_range(rng, range->value[0], range->value[1]);
}

/* An integer from such a range, both ends included. */
int32_t st_albu_draw_whole(const struct st_list *range, struct st_rng *rng);
/* Checks that both ends of a range are integers. */
int st_albu_whole(const struct st_list *range, const char *op, const char *name,
                  struct stoker_error *err);

/* The same for ranges of odd integers: one of these, and whether both ends are such. */
int32_t st_albu_draw_odd(const struct st_list *range, struct st_rng *rng);
int st_albu_odd(const struct st_list *range, const char *op, const char *name, struct stoker_error *err);

/* A number as a byte: the nearest of 0 to 255, without its fraction. */
static inline uint8_t st_albu_byte(float value)
{
    return (uint8_t)(value > 0 ? value < 255 ? value : 255 : 0);
}

/* Replaces each value by that of its channel's table. */
int st_albu_replace(struct st_image *image, const uint8_t table[3][256], struct stoker_error *err);

enum { ST_ALBU_HUES = 180 };
/* Tables for hue, saturation and value that add to hues, which go around a circle. */
void st_albu_turn_hues(uint8_t table[3][256], double by);

/* The probability of a standard normal number below `at`. */
double st_albu_below(double at);

int st_albu_no_memory(const char *op, struct stoker_error *err);

#endif
