/* mix.c - what ops on whole batches draw
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/functions.h"
#include "order/rng.h"

#include <stoker/stoker.h>

struct stoker_mix stoker_mix_draw(uint64_t seed, uint64_t epoch, uint64_t batch, uint32_t op,
                                  double alpha)
{
    struct stoker_mix mix;
    struct st_rng rng;

    st_rng_init(&rng, seed, epoch, batch, ST_RNG_BATCH + op);
    mix.choice = st_rng_f64(&rng);
    mix.x = st_rng_f64(&rng);
    mix.y = st_rng_f64(&rng);
    const double one = st_rng_log_gamma(&rng, alpha), other = st_rng_log_gamma(&rng, alpha);
    mix.lambda = 1 / (1 + st_exp(other - one));
    return mix;
}
