/* lab.h - Lab of bytes with OpenCV's arithmetic, and back
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_CV_LAB_H
#define ST_OP_CV_LAB_H

#include <stddef.h>
#include <stdint.h>

enum { ST_CV_LAB_LINEAR = 255 * 8 + 1, ST_CV_LAB_GAMMA = 4096 };

struct st_cv_lab {
    uint16_t linear[256];             /* of bytes of sRGB, with 3 fractional bits */
    uint16_t root[ST_CV_LAB_LINEAR];  /* cube roots of such, with 15 fractional bits */
    uint16_t y[256], root_y[256];     /* of L: the luminance and its root, with 14 */
    uint8_t gamma[ST_CV_LAB_GAMMA];   /* bytes of linear values */
};
void st_cv_lab_make(struct st_cv_lab *lab);

/* RGB2Lab and Lab2RGB of `count` pixels, in place. */
void st_cv_to_lab(const struct st_cv_lab *lab, uint8_t *pixels, size_t count);
void st_cv_from_lab(const struct st_cv_lab *lab, uint8_t *pixels, size_t count);

#endif
