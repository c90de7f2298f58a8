/* rng.h - random numbers as a function of (seed, epoch, sample, op): Philox4x32-10
 *
 * No generator is shared or carries state from sample to sample: what an op draws for a sample does not
 * depend on the thread, the batch, or earlier draws.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_ORDER_RNG_H
#define ST_ORDER_RNG_H

#include <stdint.h>

/* Ten rounds of Philox on one counter block. */
void st_philox4x32(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

struct st_rng {
    uint32_t key[2], counter[4]; /* counter: sample (64 bits), epoch (32), op (16) and block (16) */
    uint32_t block[4];
    uint32_t left; /* words of `block` not used yet */
};

/* Reserved op numbers; the ops of a pipeline count from 0. */
enum {
    ST_RNG_SUBSTITUTE = 0xffff,
    ST_RNG_ORDER = 0xfffe,
    ST_RNG_WEIGHTED = 0xfffd,
    ST_RNG_MIX = 0xfffc,
    ST_RNG_REPEAT = 0xfffb,
    ST_RNG_VIEW = 0xfffa
};
enum { ST_RNG_BATCH = 0xff00 }; /* first of those for whole batches; `sample` is the batch */

void st_rng_init(struct st_rng *rng, uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t op);
uint32_t st_rng_u32(struct st_rng *rng);
uint64_t st_rng_u64(struct st_rng *rng);
double st_rng_f64(struct st_rng *rng);                              /* [0, 1), 53 bits */
double st_rng_range(struct st_rng *rng, double low, double high);   /* [low, high) */
uint64_t st_rng_below(struct st_rng *rng, uint64_t bound);          /* [0, bound), unbiased; bound > 0 */
double st_rng_normal(struct st_rng *rng);                           /* mean 0, variance 1 */
/* The logarithm of a gamma variate, because a variate of a small shape may underflow; shape > 0. */
double st_rng_log_gamma(struct st_rng *rng, double shape);

#endif
