/* indices.c - a list of sample indices, 4 bytes each where possible
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "order/indices.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

bool st_indices_reserve(struct st_indices *list, uint64_t room, uint64_t count)
{
    const bool wide = count > (1ull << 32);
    if (room <= list->room && wide == (list->wide != NULL))
        return true;
    st_indices_free(list);
    uint64_t bytes;
    if (!st_mul(room, wide ? sizeof *list->wide : sizeof *list->narrow, &bytes))
        return false;
    void *block = st_alloc_aligned(bytes);
    if (!block)
        return false;
    if (wide)
        list->wide = block;
    else
        list->narrow = block;
    list->room = room;
    return true;
}

void st_indices_free(struct st_indices *list)
{
    free(list->narrow);
    free(list->wide);
    memset(list, 0, sizeof *list);
}
