/* keep.h - an index kept in a file, and used again while the tree has not changed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_KEEP_H
#define ST_SOURCE_KEEP_H

#include "source/index.h"

/* A folder changed less than this before the scan is not settled: a file system that counts in whole
 * seconds (or two, as FAT does) could stamp a change after the scan just as it stamped the one before.
 */
#define ST_KEEP_SETTLED_NS 2000000000ll

/* Where the index for `key` is kept below `directory`, which is made if it is missing. */
int st_keep_path(char out[PATH_MAX], const char *directory, const void *key, uint64_t key_size,
                 struct stoker_error *err);
/* The whole file in memory, for st_index_load and its like to check; NULL when it is not there or cannot be an
 * index. Never mapped: whoever cuts the file short would end the process by a signal. The caller frees it. */
uint8_t *st_keep_read(const char *file, uint64_t *size);
/* The kept index, if there is a sound one for this key and each folder below `prefix` is as it was. */
bool st_keep_load(struct st_index *out, const char *file, const void *key, uint64_t key_size,
                  const char *prefix, uint32_t threads);
/* Keeps the index if a later change of any folder must show, given when the scan began (since 1970).
 * Replaces the file in one step. A file that cannot be written is no error: the next open scans again.
 */
void st_keep_store(struct st_index *index, const char *file, int64_t scan_began_ns);
/* Puts a file of these bytes in the place of the one there, in one step; false: nothing has changed. Durable: it
 * is on the disk before the old one is gone, which takes its time. */
bool st_keep_replace(const char *file, const void *bytes, uint64_t size, bool durable);

#endif
