/* mix.c - what ops on whole batches draw
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/functions.h"
#include "order/rng.h"

#include <math.h>
#include <stoker/stoker.h>

/* The logarithm of a gamma variate, by Marsaglia and Tsang, "A simple method for generating gamma
 * variables" (ACM TOMS 2000). A shape below 1 is drawn one higher and brought down by a power of an even
 * number; in logarithms, since small shapes give numbers that a double cannot hold. */
static double log_gamma_variate(struct st_rng *rng, double shape)
{
    const double lift = shape < 1 ? st_ln(1 - st_rng_f64(rng)) / shape : 0;
    const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / sqrt(9 * d);

    for (;;) {
        const double normal = st_rng_normal(rng), root = 1 + c * normal, v = root * root * root;

        if (root > 0 && st_ln(1 - st_rng_f64(rng)) < 0.5 * normal * normal + d - d * v + d * st_ln(v))
            return st_ln(d) + st_ln(v) + lift;
    }
}

struct stoker_mix stoker_mix_draw(uint64_t seed, uint64_t epoch, uint64_t batch, uint32_t op,
                                  double alpha)
{
    struct stoker_mix mix;
    struct st_rng rng;

    st_rng_init(&rng, seed, epoch, batch, ST_RNG_BATCH + op);
    mix.choice = st_rng_f64(&rng);
    mix.x = st_rng_f64(&rng);
    mix.y = st_rng_f64(&rng);
    const double one = log_gamma_variate(&rng, alpha), other = log_gamma_variate(&rng, alpha);
    mix.lambda = 1 / (1 + st_exp(other - one));
    return mix;
}
