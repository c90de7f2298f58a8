/* compound.h - datasets made of other datasets: shared by concat, subset and mix
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_COMPOSE_COMPOUND_H
#define ST_SOURCE_COMPOSE_COMPOUND_H

#include "source/kinds.h"

struct st_found {
    uint32_t part;
    uint64_t sample; /* of that part */
};

/* Maps a sample to a part and a sample of that part: a pure function. */
typedef struct st_found st_compound_find(const void *map, uint64_t sample);

/* Creates a dataset of `count` samples of these parts, to which it keeps references. `map` comes from
 * malloc and is owned by the dataset, also if this fails. All parts must have the same fields; parts
 * without fields count as image and label. */
int st_compound_new(struct stoker_dataset **out, struct stoker_dataset *const *parts,
                    uint32_t part_count, uint64_t count, st_compound_find *find, void *map,
                    struct stoker_error *err);

/* Lets the first image be bytes, which nobody decodes; false if it is pixels, or there is none. */
bool st_compound_keep_encoded(struct stoker_dataset *data);

/* The parts of such a dataset, which it owns; NULL for any other dataset. */
struct stoker_dataset *const *st_compound_parts(const struct stoker_dataset *data, uint32_t *count);
/* The part and its sample that a sample below the dataset's count stands for. */
struct st_found st_compound_sample(const struct stoker_dataset *data, uint64_t sample);

#endif
