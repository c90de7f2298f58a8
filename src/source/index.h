/* index.h - the samples of a tree of files, as one block of bytes that can also be kept in a file
 *
 * Sample i is prefix + text[dirs[sample_dirs[i]].path] + text[names[i]]: 12 bytes a sample besides its
 * name. The block is a header, the key (what the index was made for), and the tables, each a multiple of
 * 8 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_INDEX_H
#define ST_SOURCE_INDEX_H

#include "source/scan.h"

struct st_index_header {
    uint64_t magic;
    uint32_t version, crc; /* of all bytes behind this field */
    uint64_t size;         /* of the whole block */
    uint64_t key_size, class_count, dir_count, sample_count, text_size;
};

struct st_index_dir {
    uint64_t path; /* in text: "a/b/"; of a link that leads nowhere "a/b" */
    struct st_stamp stamp;
    uint32_t label, unused;
};

/* In sample_dirs: the entry is a pipe, a socket or a device, which nobody should try to read. */
#define ST_INDEX_ODD (1u << 31)

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

/* Lays out what a scan found: folder by folder in the order of their paths, or, without classes, all
 * samples in the order of their paths. The block is then the index's own. */
int st_index_build(struct st_index *out, const struct st_scan *scan, const void *key, uint64_t key_size,
                   struct stoker_error *err);
/* Takes a block that may hold anything, aligned to 8 bytes; false when it is no sound index. On success
 * the index refers to the block, which must have come from malloc if st_index_free is to be called. */
bool st_index_load(struct st_index *out, uint8_t *bytes, uint64_t size);
void st_index_free(struct st_index *index);

/* The checksum of a block of at least a header's size, and what puts it there: needed before it is kept in a file.
 * For any block that begins as st_index_header does, up to its size. */
uint32_t st_index_sum(const uint8_t *bytes, uint64_t size);
void st_index_seal(uint8_t *bytes, uint64_t size);

#endif
