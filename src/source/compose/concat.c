/* concat.c - datasets concatenated
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/compose/compound.h"

#include <stdlib.h>

struct starts {
    uint32_t count;
    uint64_t ends[]; /* one past each part's last sample */
};

static struct st_found find_part(const void *map, uint64_t sample)
{
    const struct starts *starts = map;
    uint32_t low = 0, high = starts->count - 1;
    while (low < high) { /* the first part that ends after it; never an empty one */
        const uint32_t middle = low + (high - low) / 2;
        if (sample < starts->ends[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return (struct st_found){low, sample - (low ? starts->ends[low - 1] : 0)};
}

int st_dataset_concat(struct stoker_dataset **out, struct stoker_dataset *const *parts, uint32_t count,
                      struct stoker_error *err)
{
    if (!count)
        return st_fail(err, STOKER_EINVAL, "concat: no datasets given");
    struct starts *starts = st_calloc(1, sizeof *starts + count * sizeof *starts->ends);
    if (!starts)
        return st_fail(err, STOKER_ENOMEM, "concat: out of memory");
    starts->count = count;
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!st_add(total, st_dataset_count(parts[i]), &total)) {
            free(starts);
            return st_fail(err, STOKER_ELIMIT, "concat: more samples than 64 bits can count");
        }
        starts->ends[i] = total;
    }
    return st_compound_new(out, parts, count, total, find_part, starts, err);
}
