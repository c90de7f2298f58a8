/* pairs.h - databases in which an image and its label are two entries: image-000000001 and
 * label-000000001
 *
 * This layout is used by scene text recognition datasets, which number their samples from 1 and store
 * their count at num-samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LMDB_PAIRS_H
#define ST_SOURCE_LMDB_PAIRS_H

#include "source/lmdb/tree.h"

struct st_lmdb_pairs {
    uint64_t images, image_count; /* the first entry, and how many; 0: not such a database */
    uint64_t labels, label_count;
};

/* The database has this layout if all keys are of these two kinds. The entries must be sorted
 * bytewise. */
int st_lmdb_pairs_find(struct st_lmdb_pairs *out, const struct st_lmdb_contents *contents,
                       const struct st_held *file, struct stoker_error *err);
/* The entry of an image's label; STOKER_ECORRUPT if there is none. Any thread. */
int st_lmdb_pairs_label(const struct st_lmdb_pairs *pairs, const struct st_lmdb_contents *contents,
                        const struct st_held *file, uint64_t sample, const struct st_lmdb_entry **out,
                        struct stoker_error *err);

#endif
