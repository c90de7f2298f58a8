/* pairs.h - databases in which an image and its label are two entries: image-000000001 and
 * label-000000001
 *
 * The way of data sets for reading text in scenes, which number their samples from 1 and store how many
 * there are below num-samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LMDB_PAIRS_H
#define ST_SOURCE_LMDB_PAIRS_H

#include "source/lmdb/tree.h"

struct st_lmdb_pairs {
    uint64_t images, image_count; /* the first entry, and how many; 0: the database is another one */
    uint64_t labels, label_count;
};

/* The contents are of such a database if all keys are of these two kinds. They must be in the order of
 * bytes. */
int st_lmdb_pairs_find(struct st_lmdb_pairs *out, const struct st_lmdb_contents *contents,
                       const struct st_held *file, struct stoker_error *err);
/* The entry of the label that belongs to an image; STOKER_ECORRUPT where there is none. Any thread. */
int st_lmdb_pairs_label(const struct st_lmdb_pairs *pairs, const struct st_lmdb_contents *contents,
                        const struct st_held *file, uint64_t sample, const struct st_lmdb_entry **out,
                        struct stoker_error *err);

#endif
