/* indices.h - a list of sample numbers, in 4 bytes each where they fit
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_ORDER_INDICES_H
#define ST_ORDER_INDICES_H

#include <stdbool.h>
#include <stdint.h>

struct st_indices {
    uint32_t *narrow; /* one of the two, depending on the largest number */
    uint64_t *wide;
    uint64_t room;
};

static inline uint64_t st_indices_get(const struct st_indices *list, uint64_t i)
{
    return list->wide ? list->wide[i] : list->narrow[i];
}

static inline void st_indices_set(struct st_indices *list, uint64_t i, uint64_t value)
{
    if (list->wide)
        list->wide[i] = value;
    else
        list->narrow[i] = (uint32_t)value;
}

/* Room for `room` numbers below `count`; false when out of memory. Contents are lost. */
bool st_indices_reserve(struct st_indices *list, uint64_t room, uint64_t count);
void st_indices_free(struct st_indices *list);

/* Fills the list with what torch's RandomSampler draws from a CPU generator seeded with `seed`: as many
 * whole permutations of [0, count) one after another as reach `length`. Room for st_randperm_room(). */
void st_randperm(struct st_indices *list, uint64_t count, uint64_t length, uint64_t seed);
/* Numbers that st_randperm writes: `length` up to a multiple of `count`; 0 when that overflows. */
uint64_t st_randperm_room(uint64_t count, uint64_t length);

#endif
