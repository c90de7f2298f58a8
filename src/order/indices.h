/* indices.h - a list of sample indices, 4 bytes each where possible
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_ORDER_INDICES_H
#define ST_ORDER_INDICES_H

#include <stdbool.h>
#include <stdint.h>

struct st_indices {
    uint32_t *narrow; /* either this or `wide`, depending on the largest index */
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

/* Makes room for `room` indices below `count`; false when out of memory. The contents are lost. */
bool st_indices_reserve(struct st_indices *list, uint64_t room, uint64_t count);
void st_indices_free(struct st_indices *list);

/* Fills the list with what torch's RandomSampler draws from a CPU generator seeded with `seed`: whole
 * permutations of [0, count), as many as are needed to reach `length`. The list must have room for
 * st_randperm_room(). */
void st_randperm(struct st_indices *list, uint64_t count, uint64_t length, uint64_t seed);
/* Number of indices that st_randperm writes: `length` rounded up to a multiple of `count`; 0 on
 * overflow. */
uint64_t st_randperm_room(uint64_t count, uint64_t length);

#endif
