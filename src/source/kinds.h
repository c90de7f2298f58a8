/* kinds.h - the kinds of source, and the constructor of their datasets
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_KINDS_H
#define ST_SOURCE_KINDS_H

#include "source/source.h"

extern const struct st_source st_source_folder;
extern const struct st_source st_source_flat;
extern const struct st_source st_source_csv;
extern const struct st_source st_source_hdf5;
extern const struct st_source st_source_jsonl;
extern const struct st_source st_source_lmdb;
extern const struct st_source st_source_npy;
extern const struct st_source st_source_npz;
extern const struct st_source st_source_tar;
extern const struct st_source st_source_tfrecord;
extern const struct st_source st_source_zip;

/* A dataset with zeroed state and a reference count of 1; NULL if out of memory. */
struct stoker_dataset *st_dataset_new(const struct st_source *source);

/* For sources without labels, and for samples without names. */
int64_t st_label_zero(const void *self, uint64_t sample);
size_t st_name_by_number(const void *self, uint64_t sample, char *buffer, size_t size);

#endif
