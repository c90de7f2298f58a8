/* lab.c - Lab of bytes with OpenCV's arithmetic, and back
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/lab.h"

#include "base/functions.h"
#include "op/cv/colour.h"

#include <math.h>

enum {
    FACTOR_BITS = 12,
    ROOT_BITS = 15,
    LIGHT = (116 * 255 + 50) / 100, /* 116 of 100 levels, and 16 */
    LIGHT_LESS = (16 * 255 * (1 << ROOT_BITS) + 50) / 100,
    MIDDLE = 128,
    ONE_BITS = 14, /* of what Lab is made of on the way back */
    ONE = 1 << ONE_BITS,
    LINEAR_END = 3390, /* roots up to 6 / 29 are on a line */
};

/* ---- tables ------------------------------------------------------------------------------------ */

static uint16_t linear_of(int32_t value)
{
    const double x = value / 255.0;
    return (uint16_t)lrint(255 * 8 * (x <= 0.04045 ? x / 12.92 : st_power((x + 0.055) / 1.055, 2.4)));
}

/* OpenCV's root is a float. */
static uint16_t root_of(int32_t value)
{
    const double y = value / (255.0 * 8);
    const float root = (float)(y < 216.0 / 24389 ? y * 841 / 108 + 16.0 / 116 : st_power(y, 1.0 / 3));
    return (uint16_t)lrintf(root * (1 << ROOT_BITS));
}

static uint8_t gamma_of(int32_t value)
{
    const double x = (double)value / ST_CV_LAB_GAMMA;
    return (uint8_t)lrint(255 * (x <= 0.0031308 ? x * 12.92 : 1.055 * st_power(x, 1 / 2.4) - 0.055));
}

static uint8_t light_of(int32_t root)
{
    return (uint8_t)((LIGHT * root - LIGHT_LESS + (1 << (ROOT_BITS - 1))) >> ROOT_BITS);
}

void st_cv_lab_make(struct st_cv_lab *lab)
{
    enum { LOW = 20 }; /* L up to 8 of 100 is on a line */
    for (int v = 0; v < 256; v++)
        lab->linear[v] = linear_of(v);
    for (int v = 0; v < ST_CV_LAB_LINEAR; v++)
        lab->root[v] = root_of(v);
    for (int v = 0; v < ST_CV_LAB_GAMMA; v++)
        lab->gamma[v] = gamma_of(v);
    for (int v = 0; v < 256; v++) {
        const double low_root = ONE * (16.0 / 116 + v * 5.0 / (3 * 17 * 29));
        const double root = v <= LOW ? low_root : v * 100.0 * ONE / (255 * 116) + 16.0 * ONE / 116;
        const double low = ONE * (v * 180.0 / (17 * 29 * 29 * 29));
        const double y = v <= LOW ? low : root * root * root / ONE / ONE;
        lab->root_y[v] = (uint16_t)lrint(root);
        lab->y[v] = (uint16_t)lrint(y);
    }
}

void st_cv_light_make(struct st_cv_light *light)
{
    for (int v = 0; v < 256; v++)
        light->linear[v] = linear_of(v);
    for (int v = 0; v < ST_CV_LAB_LINEAR; v++)
        light->light[v] = light_of(root_of(v));
}

/* ---- pixels ------------------------------------------------------------------------------------ */

static uint8_t byte_of(int32_t value) { return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value); }

static int32_t root_at(const struct st_cv_lab *lab, int32_t sum)
{
    return lab->root[(sum + (1 << (FACTOR_BITS - 1))) >> FACTOR_BITS];
}

void st_cv_to_lab(const struct st_cv_lab *lab, uint8_t *pixels, size_t count)
{
    const int32_t centre = MIDDLE * (1 << ROOT_BITS) + (1 << (ROOT_BITS - 1));
    for (uint8_t *p = pixels; p < pixels + 3 * count; p += 3) {
        const int32_t r = lab->linear[p[0]], g = lab->linear[p[1]], b = lab->linear[p[2]];
        const int32_t x = root_at(lab, 1777 * r + 1541 * g + 778 * b);
        const int32_t y = root_at(lab, 871 * r + 2929 * g + 296 * b);
        const int32_t z = root_at(lab, 73 * r + 448 * g + 3575 * b);
        p[0] = light_of(y);
        p[1] = byte_of((500 * (x - y) + centre) >> ROOT_BITS);
        p[2] = byte_of((200 * (y - z) + centre) >> ROOT_BITS);
    }
}

/* The cube of a root, in steps that each leave out fractions. */
static int32_t cube_of(int32_t root)
{
    if (root <= LINEAR_END)
        return root * 108 / 841 - ONE * 16 / 116 * 108 / 841;
    return ((root * root >> ONE_BITS) * root) >> ONE_BITS;
}

static uint8_t sum_of(const struct st_cv_lab *lab, int32_t x, int32_t y, int32_t z)
{
    const int32_t linear = (x + y + z + (1 << (ONE_BITS - 1))) >> ONE_BITS;
    return lab->gamma[linear < 0 ? 0 : linear < ST_CV_LAB_GAMMA ? linear : ST_CV_LAB_GAMMA - 1];
}

void st_cv_from_lab(const struct st_cv_lab *lab, uint8_t *pixels, size_t count)
{
    for (uint8_t *p = pixels; p < pixels + 3 * count; p += 3) {
        /* A 500th and a 200th of them, in fixed point. */
        const int32_t a = ((5 * p[1] * 53687 + 128) >> 13) - MIDDLE * ONE / 500;
        const int32_t b = ((p[2] * 41943 + 16) >> 9) - MIDDLE * ONE / 200 + 1;
        const int32_t y = lab->y[p[0]], root = lab->root_y[p[0]];
        const int32_t x = cube_of(root + a), z = cube_of(root - b);
        p[0] = sum_of(lab, 12615 * x, -6296 * y, -2223 * z);
        p[1] = sum_of(lab, -3773 * x, 7684 * y, 185 * z);
        p[2] = sum_of(lab, 217 * x, -836 * y, 4715 * z);
    }
}
