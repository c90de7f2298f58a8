/* manifest.h - the contents of a pack, and the progress of an unfinished one
 *
 * The manifest is JSON with one entry per line, so that it can be parsed line by line.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_PACKS_MANIFEST_H
#define ST_SOURCE_PACKS_MANIFEST_H

#include "source/source.h"
#include "source/table/cells.h"

#define ST_PACK_MANIFEST "manifest.json"
/* How the file and its lines begin. */
#define ST_PACK_BEGIN "{\n\"stoker_pack\": 1,\n"
#define ST_PACK_LINE_SETTINGS    "\"settings\": "
#define ST_PACK_LINE_ARCHIVES    "\"source_archives\": \""
#define ST_PACK_LINE_SAMPLES     "\"samples\": "
#define ST_PACK_LINE_LEDGER_SIZE "\"ledger_size\": "
#define ST_PACK_LINE_COMPLETE    "\"complete\": "
#define ST_PACK_LINE_UNDER_WAY   "\"under_way\": "
#define ST_PACK_LINE_SHARD       "{\"name\": "
#define ST_PACK_LINE_BESIDE      "{\"file\": "

struct st_pack_shard {
    char name[64];
    uint64_t first, positions; /* in the order of packing */
    uint64_t samples, bytes;
    uint64_t
        source; /* a checksum of the source's samples up to this shard's last: names, sizes, times */
    uint32_t crc;
};

/* If the output consists of several files: those besides the shard. */
struct st_pack_beside {
    uint32_t count;
    struct st_pack_file {
        char name[64];
        uint64_t bytes;
        uint32_t crc;
    } files[ST_FIELDS_MAX];
};

/* The progress of an unfinished output; positions 0: there is nothing to resume. */
struct st_pack_mark {
    uint64_t positions, samples;
    uint64_t source; /* as in st_pack_shard */
};

struct st_pack {
    char *settings; /* one line of JSON: what the output depends on */
    uint64_t
        archives; /* a checksum of names, sizes and times of the source's archives when packing began */
    struct st_pack_shard *shards;
    uint64_t shard_count, shard_room;
    uint64_t positions, samples, bytes, bad; /* of all shards */
    uint64_t claimed;                        /* the number of samples that the file states */
    struct st_pack_mark mark;
    struct st_pack_beside beside;
    struct st_cells classes; /* names by label; empty: the source had none */
    uint64_t ledger_size;
    bool complete;
    char *pending; /* ledger lines of the unfinished shard */
    uint64_t pending_size, pending_room;
};
/* Adds a shard to the list; false if out of memory. */
bool st_pack_note(struct st_pack *manifest, const struct st_pack_shard *shard);
/* Reads the manifest of a folder; STOKER_END if it is not a pack. */
int st_pack_read(struct st_pack *manifest, const char *folder, struct stoker_error *err);
void st_pack_free(struct st_pack *manifest); /* safe after a failed read */

#endif
