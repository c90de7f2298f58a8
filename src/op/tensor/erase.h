/* erase.h - overwriting a box of a finished image; the box is drawn separately
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_TENSOR_ERASE_H
#define ST_OP_TENSOR_ERASE_H

#include "base/mem.h"
#include "op/tensor/finish.h"

#include <string.h>

/* Properties of the finished image, for ops that draw a box, and memory for the box's values. */
struct st_erase_into {
    const struct st_finish_spec *spec;
    const struct st_finish *finish;
    int32_t width, height;
    struct st_arena *arena;
};

struct st_erase {
    struct st_region box;
    uint32_t bits[4];   /* per channel; or: */
    const void *values; /* not NULL: values of the output's type in the order channel, row, column */
    uint64_t bytes;     /* of values */
};

/* Writes one value of the output's type, which has `element` bytes. */
static inline void st_put_bits(void *to, size_t element, uint32_t bits)
{
    if (element == 4)
        memcpy(to, &bits, 4);
    else if (element == 2)
        memcpy(to, &(uint16_t){(uint16_t)bits}, 2);
    else
        *(uint8_t *)to = (uint8_t)bits;
}

void st_erase_write(const struct st_erase *erase, const struct st_finish *finish,
                    const struct st_place *place);

#endif
