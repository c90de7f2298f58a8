/* index.h - the index of one archive: where its samples are, as one block that is also the file format
 *
 * A sample has several parts (the members of a tar file that belong together) or is one part (a record).
 * A part is a span of the archive including headers; parts are in file order and never overlap. All
 * tables are flat arrays, so that the block can be used as it was read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_INDEX_H
#define ST_SOURCE_SHARDS_INDEX_H

#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"

#include <limits.h>

/* Identifies the archive that was indexed: it changes when the archive does. */
struct st_shard_stamp {
    uint64_t size;
    int64_t modified_ns;
    uint64_t sampled; /* a checksum of a few pieces of its content */
};

struct st_shard_header {
    uint64_t magic; /* same layout as st_index_header up to `size`: st_index_seal works for both */
    uint32_t version, crc;
    uint64_t size; /* of the whole block */
    uint64_t kind; /* the kind of archive and the version of its indexing rules */
    struct st_shard_stamp stamp;
    uint64_t sample_count, part_count, suffix_count, text_size;
    uint64_t named;  /* 1: samples have keys and parts have suffixes */
    uint64_t summed; /* 1: parts have checksums */
};

struct st_shard_part {
    uint64_t start, end; /* an end past the archive's: it is truncated; or ST_SHARD_LOST */
};
/* The end of a part that stands for everything from `start` on that could not be found because the
 * archive is damaged there. */
#define ST_SHARD_LOST UINT64_MAX

struct st_shard_index {
    const uint8_t *bytes; /* the block; the rest points into it */
    uint64_t size;
    bool lent; /* the block has another owner, which outlives this index */
    struct st_shard_stamp stamp;
    uint64_t sample_count, part_count, suffix_count, text_size;
    const uint64_t
        *firsts; /* the first part of each sample, then part_count; NULL: part i is sample i */
    const uint64_t *keys;   /* in text; NULL: samples have no keys */
    const struct st_shard_part *parts;
    const uint32_t *part_suffixes; /* in suffixes */
    const uint32_t *crcs; /* CRC32C of each part's payload; 0 (or NULL for all): not known yet */
    const uint64_t *suffixes;      /* in text */
    const char *text;
};

static inline uint64_t st_shard_first(const struct st_shard_index *index, uint64_t sample)
{
    return index->firsts ? index->firsts[sample] : sample;
}

/* Loads an untrusted block, aligned to 8 bytes; returns false if it is not a valid index of this
 * kind. */
bool st_shard_index_load(struct st_shard_index *out, const uint8_t *bytes, uint64_t size, uint64_t kind);
void st_shard_index_free(struct st_shard_index *index);
/* Sets the archive's stamp; only for an index that owns its block. */
void st_shard_index_stamp(struct st_shard_index *index, const struct st_shard_stamp *stamp);
/* Copies the index into a new block with these checksums. */
int st_shard_index_sum(struct st_shard_index *out, const struct st_shard_index *index,
                       const uint32_t *crcs, struct stoker_error *err);

/* ---- building -------------------------------------------------------------------------------- */

struct st_shard_builder {
    bool named;
    struct st_shard_part *parts;
    uint64_t *firsts, *keys, *suffixes;
    uint32_t *part_suffixes;
    char *text;
    uint64_t part_count, part_room, sample_count, sample_room, suffix_count, suffix_room;
    uint64_t text_size, text_room;
};

/* All return false if out of memory. st_shard_begin starts a sample, to which st_shard_add then adds
 * parts. */
bool st_shard_begin(struct st_shard_builder *b, struct st_bytes key);
bool st_shard_add(struct st_shard_builder *b, uint64_t start, uint64_t end, struct st_bytes suffix);
/* The key of the current sample. */
struct st_bytes st_shard_last_key(const struct st_shard_builder *b);
int st_shard_build(struct st_shard_index *out, const struct st_shard_builder *b, uint64_t kind,
                   const struct st_shard_stamp *stamp, struct stoker_error *err);
void st_shard_builder_free(struct st_shard_builder *b);

#endif
