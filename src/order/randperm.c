/* randperm.c - the permutations that torch.randperm draws on a CPU
 *
 * torch's CPU generator is MT19937, seeded with the low 32 bits of the seed. randperm is a Fisher-Yates
 * shuffle whose draws are reduced modulo the number of remaining elements; from 214,748,364 elements on,
 * it draws 64 bits at a time and builds the permutation from the front. Both match torch since version
 * 2.6.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "order/indices.h"

enum { STATE = 624, SHIFT = 397 };

struct twister {
    uint32_t state[STATE];
    uint32_t used;
};

static void twister_seed(struct twister *t, uint64_t seed)
{
    t->state[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < STATE; i++)
        t->state[i] = 1812433253u * (t->state[i - 1] ^ t->state[i - 1] >> 30) + i;
    t->used = STATE;
}

static void twister_refill(struct twister *t)
{
    for (uint32_t i = 0; i < STATE; i++) {
        const uint32_t next = t->state[(i + 1) % STATE];
        const uint32_t joined = (t->state[i] & 0x80000000u) | (next & 0x7fffffffu);
        t->state[i] = t->state[(i + SHIFT) % STATE] ^ joined >> 1 ^ (next & 1 ? 0x9908b0dfu : 0);
    }
    t->used = 0;
}

static inline uint32_t twister_u32(struct twister *t)
{
    if (t->used == STATE)
        twister_refill(t);
    uint32_t y = t->state[t->used++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

static inline uint64_t twister_u64(struct twister *t)
{
    const uint64_t high = twister_u32(t);
    return high << 32 | twister_u32(t);
}

static void permute_small(struct st_indices *list, uint64_t at, uint32_t count, struct twister *t)
{
    for (uint32_t i = 0; i < count; i++)
        st_indices_set(list, at + i, i);
    for (uint32_t i = 0; i + 1 < count; i++) {
        const uint64_t here = at + i, other = here + twister_u32(t) % (count - i);
        const uint64_t value = st_indices_get(list, here);
        st_indices_set(list, here, st_indices_get(list, other));
        st_indices_set(list, other, value);
    }
}

static void permute_large(struct st_indices *list, uint64_t at, uint64_t count, struct twister *t)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t other = at + twister_u64(t) % (i + 1);
        st_indices_set(list, at + i, i);
        st_indices_set(list, at + i, st_indices_get(list, other));
        st_indices_set(list, other, i);
    }
}

uint64_t st_randperm_room(uint64_t count, uint64_t length)
{
    const uint64_t over = count ? length % count : 0;
    const uint64_t missing = over ? count - over : 0;
    return missing <= UINT64_MAX - length ? length + missing : 0;
}

void st_randperm(struct st_indices *list, uint64_t count, uint64_t length, uint64_t seed)
{
    struct twister t;
    twister_seed(&t, seed);
    for (uint64_t at = 0; at < length; at += count) {
        if (count < UINT32_MAX / 20)
            permute_small(list, at, (uint32_t)count, &t);
        else
            permute_large(list, at, count, &t);
    }
}
