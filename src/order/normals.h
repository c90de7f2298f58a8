/* normals.h - many normally distributed numbers, quickly: Marsaglia and Tsang's ziggurat
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_ORDER_NORMALS_H
#define ST_ORDER_NORMALS_H

#include "order/rng.h"

enum { ST_NORMALS_LAYERS = 256 };

/* The curve exp(-x^2/2), covered by layers of the same area: their right ends, and how high it is there.
 */
struct st_normals {
    double end[ST_NORMALS_LAYERS + 1], height[ST_NORMALS_LAYERS + 1];
};
void st_normals_init(struct st_normals *normals);
/* Mean 0, variance 1; a multiple of 2^-32 of a layer's end. */
double st_normals_draw(const struct st_normals *normals, struct st_rng *rng);

#endif
