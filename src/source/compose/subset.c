/* subset.c - selected samples of a dataset, in any order, with repetitions allowed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/compose/compound.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static struct st_found find_sample(const void *map, uint64_t sample)
{
    const uint64_t *indices = map;
    return (struct st_found){0, indices[sample]};
}

int st_dataset_subset(struct stoker_dataset **out, struct stoker_dataset *data, const uint64_t *indices,
                      uint64_t count, struct stoker_error *err)
{
    const uint64_t samples = st_dataset_count(data);
    for (uint64_t i = 0; i < count; i++)
        if (indices[i] >= samples)
            return st_fail(
                err, STOKER_EINVAL,
                "subset: index %llu at position %llu is out of range: the dataset has %llu sample%s",
                (unsigned long long)indices[i], (unsigned long long)i, (unsigned long long)samples,
                st_s(samples));
    uint64_t *copy = st_calloc(count, sizeof *copy);
    if (!copy)
        return st_fail(err, STOKER_ENOMEM, "subset: out of memory for %llu indices",
                       (unsigned long long)count);
    if (count)
        memcpy(copy, indices, count * sizeof *copy);
    return st_compound_new(out, &data, 1, count, find_sample, copy, err);
}
