/* shuffle.c - a permutation of [0, count) whose elements are computed on demand
 *
 * Position p is a cell of a grid. In turn, the column is rotated by a hash of the row, and the row by a
 * hash of the column. Each step is invertible, so together they are a permutation of the grid. The grid
 * has fewer than sqrt(2 count) surplus cells; a position that lands on one of these is permuted again
 * until it lands on a valid cell. This is rare and keeps the result a permutation of [0, count).
 *
 * On a small grid the rounds cannot reach all count! permutations evenly, so for up to 1,024 samples the
 * permutation is a plain Fisher-Yates shuffle in a fixed table, which is exactly uniform.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "order/shuffle.h"

#include <assert.h>

#include "order/rng.h"

/* Returns 32 mixed bits in the upper half. The first line alone is linear in `value`: with random keys
 * any two values are independent, but three in a row are not. The fold and the second multiplication
 * remove that dependence. */
static inline uint64_t mix(uint64_t value, uint64_t factor, uint64_t offset)
{
    uint64_t x = value * factor + offset;
    x ^= x >> 32;
    return x * 0x9e3779b97f4a7c15u;
}

void st_network_init(struct st_network *network, uint64_t count, uint64_t seed, uint64_t epoch)
{
    assert(count > 1);
    struct st_rng rng;
    st_rng_init(&rng, seed, epoch, 0, ST_RNG_ORDER);
    network->count = count;
    network->column_bits = (64 - (uint32_t)__builtin_clzll(count)) / 2; /* so that rows <= 2^32 */
    network->column_mask = (1ull << network->column_bits) - 1;
    network->rows = ((count - 1) >> network->column_bits) + 1;
    for (int round = 0; round < ST_NETWORK_ROUNDS; round++) {
        network->key[round].factor = st_rng_u64(&rng) | 1;
        network->key[round].offset = st_rng_u64(&rng);
    }
}

uint64_t st_network_at(const struct st_network *network, uint64_t position)
{
    const uint64_t rows = network->rows, mask = network->column_mask;
    const uint32_t bits = network->column_bits;

    do {
        uint64_t row = position >> bits, column = position & mask;
        for (int round = 0; round < ST_NETWORK_ROUNDS; round += 2) {
            column += mix(row, network->key[round].factor, network->key[round].offset) >> (64 - bits);
            column &= mask;
            row += ((mix(column, network->key[round + 1].factor, network->key[round + 1].offset) >> 32) *
                    rows) >>
                   32;
            row -= row >= rows ? rows : 0;
        }
        position = row << bits | column;
    } while (position >= network->count);
    return position;
}

void st_shuffle_init(struct st_shuffle *shuffle, uint64_t count, uint64_t seed, uint64_t epoch)
{
    if (count > ST_SHUFFLE_TABLE) {
        st_network_init(&shuffle->network, count, seed, epoch);
        return;
    }
    struct st_rng rng;
    st_rng_init(&rng, seed, epoch, 0, ST_RNG_ORDER);
    shuffle->network.count = count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t other = (uint32_t)st_rng_below(&rng, i + 1);
        shuffle->table[i] = shuffle->table[other];
        shuffle->table[other] = (uint16_t)i;
    }
}

uint64_t st_shuffle_at(const struct st_shuffle *shuffle, uint64_t position)
{
    assert(position < shuffle->network.count);
    if (shuffle->network.count <= ST_SHUFFLE_TABLE)
        return shuffle->table[position];
    return st_network_at(&shuffle->network, position);
}
