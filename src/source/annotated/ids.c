/* ids.c - finds the places of numbers that are any 64-bit integers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/annotated/ids.h"

#include "base/mem.h"

#include <stdlib.h>

static uint64_t part_of(const struct st_ids *ids, int64_t id)
{
    return ((uint64_t)id - (uint64_t)ids->sorted[0]) >> ids->shift;
}

bool st_ids_new(struct st_ids *out, const int64_t *sorted, uint32_t count)
{
    *out = (struct st_ids){.sorted = sorted, .count = count};
    if (!count)
        return true;
    const uint64_t span = (uint64_t)sorted[count - 1] - (uint64_t)sorted[0];
    while (out->shift < 63 && span >> out->shift >= count)
        out->shift++;
    const uint64_t parts = (span >> out->shift) + 1;
    out->begins = st_calloc(parts + 1, sizeof *out->begins);
    if (!out->begins)
        return false;
    for (uint32_t i = 0; i < count; i++)
        out->begins[part_of(out, sorted[i]) + 1] = i + 1;
    for (uint64_t part = 1; part <= parts; part++)
        if (!out->begins[part])
            out->begins[part] = out->begins[part - 1];
    return true;
}

uint32_t st_ids_find(const struct st_ids *ids, int64_t id)
{
    if (!ids->count || id < ids->sorted[0] || id > ids->sorted[ids->count - 1])
        return UINT32_MAX;
    const uint64_t part = part_of(ids, id);
    uint32_t low = ids->begins[part], high = ids->begins[part + 1];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (ids->sorted[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ids->count && ids->sorted[low] == id ? low : UINT32_MAX;
}

void st_ids_free(struct st_ids *ids)
{
    free(ids->begins);
    *ids = (struct st_ids){0};
}

static int compare(const void *a, const void *b)
{
    const struct st_id_at *left = a, *right = b;
    if (left->id != right->id)
        return left->id < right->id ? -1 : 1;
    return (left->at > right->at) - (left->at < right->at);
}

uint32_t st_ids_sort(struct st_id_at *list, uint32_t count)
{
    uint32_t kept = 0;
    if (count) /* an empty list may be NULL */
        qsort(list, count, sizeof *list, compare);
    for (uint32_t i = 0; i < count; i++)
        if (i + 1 == count || list[i + 1].id != list[i].id)
            list[kept++] = list[i];
    return kept;
}
