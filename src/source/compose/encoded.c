/* encoded.c - the samples of a dataset, with their first image as the bytes that encode it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/compose/compound.h"

static struct st_found same_sample(const void *map, uint64_t sample)
{
    (void)map;
    return (struct st_found){0, sample};
}

int st_dataset_encoded(struct stoker_dataset **out, struct stoker_dataset *data,
                       struct stoker_error *err)
{
    struct stoker_dataset *whole = NULL;
    const int rc = st_compound_new(&whole, &data, 1, st_dataset_count(data), same_sample, NULL, err);
    if (rc)
        return rc;
    if (!st_compound_keep_encoded(whole)) {
        st_dataset_drop(whole);
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "the samples of this dataset have no image that is encoded");
    }
    *out = whole;
    return 0;
}
