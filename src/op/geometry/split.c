/* split.c - a side of an image in cells of nearly one length
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/split.h"

#include <stdbool.h>

void st_split_evenly(int32_t *begin, int32_t cells, int32_t length, struct st_rng *rng)
{
    int32_t longer = length % cells;
    begin[0] = 0;
    for (int32_t k = 0; k < cells; k++) {
        const bool chosen = st_rng_below(rng, (uint64_t)(cells - k)) < (uint64_t)longer;
        begin[k + 1] = begin[k] + length / cells + chosen;
        longer -= chosen;
    }
}
