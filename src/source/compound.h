/* compound.h - data sets made of others: what Concat, Subset and Mix share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_COMPOUND_H
#define ST_SOURCE_COMPOUND_H

#include "source/kinds.h"

struct st_found {
    uint32_t part;
    uint64_t sample; /* of that part */
};

/* Which sample of which part a sample is: a pure function. */
typedef struct st_found st_compound_find(const void *map, uint64_t sample);

/* A data set of `count` samples over parts, which it holds; `map` comes from malloc and becomes the data
 * set's own, also when this fails. All parts must have the same fields; those that have none have an
 * image and a label. */
int st_compound_new(struct stoker_dataset **out, struct stoker_dataset *const *parts,
                    uint32_t part_count, uint64_t count, st_compound_find *find, void *map,
                    struct stoker_error *err);

#endif
