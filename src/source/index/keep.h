/* keep.h - an index saved to a file, and reused as long as the tree has not changed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_INDEX_KEEP_H
#define ST_SOURCE_INDEX_KEEP_H

#include "source/index/index.h"

/* A folder that changed less than this before the scan is not settled: on a file system with timestamps
 * of one second (or two, as on FAT), a change after the scan could get the same timestamp as the one
 * before. */
#define ST_KEEP_SETTLED_NS 2000000000ll

/* FNV-1a, which only has to distinguish a few datasets: adds bytes to a hash that begins as
 * ST_KEEP_HASH. */
#define ST_KEEP_HASH 0xcbf29ce484222325u
uint64_t st_keep_hash(uint64_t hash, const void *bytes, uint64_t size);
/* The path of the file of a dataset, "HASH.ENDING" in `directory`, which is created if it does not
 * exist. */
int st_keep_file(char out[PATH_MAX], const char *directory, uint64_t hash, const char *ending,
                 struct stoker_error *err);
/* The same for the index for `key`. */
int st_keep_path(char out[PATH_MAX], const char *directory, const void *key, uint64_t key_size,
                 struct stoker_error *err);
/* Reads the whole file, to be checked by st_index_load or similar; NULL if it does not exist or cannot
 * be an index. It is read, not mapped, because truncating a mapped file would kill the process with
 * SIGBUS. The caller frees it. */
uint8_t *st_keep_read(const char *file, uint64_t *size);
/* Loads the saved index, if it is valid, matches the key, and no folder below `prefix` has changed. */
bool st_keep_load(struct st_index *out, const char *file, const void *key, uint64_t key_size,
                  const char *prefix, uint32_t threads);
/* Saves the index, unless a folder changed so shortly before the scan began (given as time since 1970)
 * that a later change might not show. Replaces the file atomically. Failing to write is not an error:
 * the next open scans again. */
void st_keep_store(struct st_index *index, const char *file, int64_t scan_began_ns);
/* Replaces the file atomically by one with these bytes; false: nothing has changed. Durable: the data
 * are on disk before the old file is gone, which is slower. */
bool st_keep_replace(const char *file, const void *bytes, uint64_t size, bool durable);

#endif
