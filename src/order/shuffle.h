/* shuffle.h - a permutation of [0, count) whose elements are computed on demand
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_ORDER_SHUFFLE_H
#define ST_ORDER_SHUFFLE_H

#include <stdint.h>

enum { ST_NETWORK_ROUNDS = 8, ST_SHUFFLE_TABLE = 1024 };

/* A keyed Feistel network on a grid of rows * 2^column_bits cells, the smallest that holds `count`. */
struct st_network {
    uint64_t count, rows, column_mask;
    uint32_t column_bits;
    struct {
        uint64_t factor, offset;
    } key[ST_NETWORK_ROUNDS];
};

struct st_shuffle {
    struct st_network network;
    uint16_t table[ST_SHUFFLE_TABLE]; /* the whole permutation, for small counts */
};

/* O(1) time for any count; the permutation is a function of (count, seed, epoch). */
void st_shuffle_init(struct st_shuffle *shuffle, uint64_t count, uint64_t seed, uint64_t epoch);
/* The sample at `position` < count. Any thread. */
uint64_t st_shuffle_at(const struct st_shuffle *shuffle, uint64_t position);

/* The network alone; count > 1. */
void st_network_init(struct st_network *network, uint64_t count, uint64_t seed, uint64_t epoch);
uint64_t st_network_at(const struct st_network *network, uint64_t position);

#endif
