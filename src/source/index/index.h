/* index.h - the samples of a tree of files, as one block of bytes that can also be saved to a file
 *
 * Sample i is prefix + text[dirs[sample_dirs[i]].path] + text[names[i]]: 12 bytes per sample besides its
 * name. The block is a header, the key (which identifies what was indexed), and the tables, each padded
 * to a multiple of 8 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_INDEX_INDEX_H
#define ST_SOURCE_INDEX_INDEX_H

#include "source/index/scan.h"

struct st_index_header {
    uint64_t magic;
    uint32_t version, crc; /* of all bytes after this field */
    uint64_t size;         /* of the whole block */
    uint64_t key_size, class_count, dir_count, sample_count, text_size;
};

struct st_index_dir {
    uint64_t path; /* in text: "a/b/"; for a dangling link "a/b" */
    struct st_stamp stamp;
    uint32_t label, unused;
};

/* In sample_dirs: the entry is a special file (pipe, socket or device), which must not be read. */
#define ST_INDEX_SPECIAL (1u << 31)

struct st_index {
    uint8_t *bytes; /* the block; the rest points into it */
    uint64_t size;
    const char *key;
    uint64_t key_size, class_count, dir_count, sample_count, text_size;
    const uint64_t *classes; /* names in text */
    const struct st_index_dir *dirs;
    const uint64_t *names;
    const uint32_t *sample_dirs;
    const char *text;
};

/* Builds the index of a scan: folder by folder, sorted by path; without classes, all samples sorted by
 * path. The index owns the block. */
int st_index_build(struct st_index *out, const struct st_scan *scan, const void *key, uint64_t key_size,
                   struct stoker_error *err);
/* Loads an untrusted block, aligned to 8 bytes; returns false if it is not a valid index. On success the
 * index refers to the block, which must have come from malloc if st_index_free is to be called. */
bool st_index_load(struct st_index *out, uint8_t *bytes, uint64_t size);
void st_index_free(struct st_index *index);

/* Computes the checksum of a block of at least a header's size; st_index_seal stores it in the header,
 * which is required before the block is saved. Both work for any block that begins like st_index_header,
 * up to its size. */
uint32_t st_index_sum(const uint8_t *bytes, uint64_t size);
void st_index_seal(uint8_t *bytes, uint64_t size);

#endif
