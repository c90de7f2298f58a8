/* normals.c - many normally distributed numbers, quickly
 *
 * Marsaglia and Tsang, "The ziggurat method for generating random variables" (2000), with the lowest
 * bits of a number for the layer and the others for the place in it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "order/normals.h"

#include "base/functions.h"

#include <math.h>

/* Where the tail begins, and the area of a layer, for 256 layers. */
#define TAIL 3.6541528853610088
#define AREA 0.00492867323399

static double curve(double x) { return st_exp(-0.5 * x * x); }

void st_normals_init(struct st_normals *n)
{
    n->end[0] = AREA / curve(TAIL); /* the lowest layer and the tail, as if they were a rectangle */
    n->end[1] = TAIL;
    for (int k = 2; k < ST_NORMALS_LAYERS; k++)
        n->end[k] = sqrt(-2 * st_ln(AREA / n->end[k - 1] + curve(n->end[k - 1])));
    n->end[ST_NORMALS_LAYERS] = 0;
    for (int k = 0; k <= ST_NORMALS_LAYERS; k++)
        n->height[k] = curve(n->end[k]);
}

static double draw_tail(struct st_rng *rng)
{
    double beyond, height;
    do {
        beyond = -st_ln(1 - st_rng_f64(rng)) / TAIL;
        height = -st_ln(1 - st_rng_f64(rng));
    } while (2 * height < beyond * beyond);
    return TAIL + beyond;
}

double st_normals_draw(const struct st_normals *n, struct st_rng *rng)
{
    enum { MASK = ST_NORMALS_LAYERS - 1 };
    for (;;) {
        const uint32_t random = st_rng_u32(rng), layer = random & MASK;
        const double place = ((double)(int32_t)(random & ~(uint32_t)MASK) + 128) * 0x1p-31;
        const double x = place * n->end[layer], away = fabs(x);
        if (away < n->end[layer + 1])
            return x;
        if (layer == 0)
            return copysign(draw_tail(rng), x);
        const double low = n->height[layer], high = n->height[layer + 1];
        if (low + (high - low) * st_rng_f64(rng) < curve(x))
            return x;
    }
}
