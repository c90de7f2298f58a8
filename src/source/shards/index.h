/* index.h - where the samples of one archive lie, as one block that is also the file it is kept in
 *
 * A sample has parts (the members of a tar file that belong together), or is one part (a record). A part
 * is a span of the archive, headers included, in the order of the file and never overlapping. Flat
 * tables of u64, so that the file can be used as it was read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_INDEX_H
#define ST_SOURCE_SHARDS_INDEX_H

#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"

#include <limits.h>

/* What tells whether an archive is still the one that was indexed. */
struct st_shard_stamp {
    uint64_t size;
    int64_t modified_ns;
    uint64_t sampled; /* a sum over a few pieces of its content */
};

struct st_shard_header {
    uint64_t magic; /* as struct st_index_header up to `size`: st_index_seal serves both */
    uint32_t version, crc;
    uint64_t size; /* of the whole block */
    uint64_t kind; /* of archive, and of the rules it was indexed by */
    struct st_shard_stamp stamp;
    uint64_t sample_count, part_count, suffix_count, text_size;
    uint64_t named;  /* 1: samples have keys, and parts suffixes */
    uint64_t summed; /* 1: parts have sums */
};

struct st_shard_part {
    uint64_t start, end; /* an end behind the archive's: it was cut off; ST_SHARD_LOST: see there */
};
/* A part that stands for all that could not be found from `start` on, because the archive is damaged
 * there. */
#define ST_SHARD_LOST UINT64_MAX

struct st_shard_index {
    const uint8_t *bytes; /* the block; the rest points into it */
    uint64_t size;
    bool lent; /* the block is another's, which outlives this */
    struct st_shard_stamp stamp;
    uint64_t sample_count, part_count, suffix_count, text_size;
    const uint64_t *firsts; /* of sample i: its first part; of the last + 1: part_count. NULL: i */
    const uint64_t *keys;   /* in text; NULL: samples have none */
    const struct st_shard_part *parts;
    const uint32_t *part_suffixes; /* in suffixes */
    const uint32_t *crcs;          /* CRC32C of each part's payload; 0, or NULL for all: not known yet */
    const uint64_t *suffixes;      /* in text */
    const char *text;
};

static inline uint64_t st_shard_first(const struct st_shard_index *index, uint64_t sample)
{
    return index->firsts ? index->firsts[sample] : sample;
}

/* Takes a block that may hold anything, aligned to 8 bytes; false when it is no sound index of this
 * kind. */
bool st_shard_index_load(struct st_shard_index *out, const uint8_t *bytes, uint64_t size, uint64_t kind);
void st_shard_index_free(struct st_shard_index *index);
/* The index is one of an archive of this stamp; only one whose block is its own. */
void st_shard_index_stamp(struct st_shard_index *index, const struct st_shard_stamp *stamp);
/* The same index as a new block, in which the parts have these sums. */
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

/* Each false when out of memory. A sample is begun, and then has the parts that are added. */
bool st_shard_begin(struct st_shard_builder *b, struct st_bytes key);
bool st_shard_add(struct st_shard_builder *b, uint64_t start, uint64_t end, struct st_bytes suffix);
/* The key of the sample begun last. */
struct st_bytes st_shard_last_key(const struct st_shard_builder *b);
int st_shard_build(struct st_shard_index *out, const struct st_shard_builder *b, uint64_t kind,
                   const struct st_shard_stamp *stamp, struct stoker_error *err);
void st_shard_builder_free(struct st_shard_builder *b);

#endif
