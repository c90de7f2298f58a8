/* shards.h - archives one after another: what the tar and the TFRecord source share
 *
 * Each archive has an index, which is kept beside it (PATH.stoker-index) or in the folder that the user
 * names, and used again while the archive's size, time and a sample of its content are what they were.
 * The indexes of many archives are also kept together (list.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_SHARDS_H
#define ST_SOURCE_SHARDS_SHARDS_H

#include "source/shards/index.h"
#include "source/shards/unpack.h"
#include "source/shards/window.h"

#include <sys/types.h>

struct st_shard_kind {
    const char *name; /* "tar file": in messages */
    const char
        *extension;  /* of the archive's name, in the place of which another program's index has .idx */
    uint64_t number; /* in kept indexes; another number where the rules change */
    bool named;      /* samples have keys, and parts suffixes */
    /* How the whole archive is packed, by its first bytes. */
    enum st_packing (*packing)(const uint8_t *head, size_t size);
    /* Finds the samples, front to back, in up to so many threads. Where the archive is damaged, the rest
     * is one part up to ST_SHARD_LOST; an error is for what is no such archive at all. */
    int (*scan)(struct st_window *window, uint32_t threads, struct st_shard_builder *into,
                struct stoker_error *err);
    /* The index that the archive holds itself, as a block of its own, if a look into the archive bears
     * it out. NULL: archives of this kind have none. */
    bool (*inside)(struct st_window *window, struct st_shard_index *out);
    /* Takes what another program's index says, if a look into the archive bears it out. */
    bool (*import)(struct st_window *window, struct st_bytes text, struct st_shard_builder *into);
};

struct st_shard_sums;

/* Of an archive's file, when it was opened: what list.h knows it by. */
struct st_shard_seen {
    uint64_t inode;
    int64_t changed_ns; /* INT64_MIN: not to be known again */
};

struct st_shard {
    struct st_shards *of;
    struct st_held file; /* fd 0: closed again, because there are too many; see st_shards.files */
    struct st_shard_seen seen;
    char *kept; /* the file of its index; NULL: not kept, or with those of the others alone */
    struct st_shard_sums *sums;
    struct st_buffer unpacked; /* of an archive that is packed as a whole */
    bool late;                 /* while opening: it did not fit beside others that were being unpacked */
    struct st_shard_index index;
    uint64_t first; /* the number of its first sample */
};

struct st_shard_list;
struct st_shard_files;

struct st_shards {
    const struct st_shard_kind *kind;
    struct st_shard *items;
    uint64_t count, sample_count;
    /* Of many archives, else NULL: */
    struct st_shard_list *list;   /* their indexes lie in it */
    struct st_shard_files *files; /* those that are open, which is done when one is first read */
    char *list_file;              /* NULL: not kept */
    pid_t owner;
    atomic_bool news;              /* of sums that the list does not have */
    atomic_ullong unsummed;        /* archives of which not all sums are known */
    struct st_allowance memory;    /* for what is unpacked: opt->max_memory */
    struct st_remote_store *store; /* of archives by URL; NULL: there are none */
};

/* Opens what the pattern stands for (expand.h), and indexes in parallel what has no index yet. */
int st_shards_open(struct st_shards *shards, const struct st_shard_kind *kind, const char *pattern,
                   const struct stoker_dataset_options *opt, struct stoker_error *err);
void st_shards_close(struct st_shards *shards);             /* safe after a failed open */
const char *st_shards_note(const struct st_shards *shards); /* for stats(); NULL: nothing to say */
uint64_t st_shards_memory(const struct st_shards *shards);  /* bytes of what is unpacked */

/* A folder is no archive, whatever its name. */
bool st_shard_is_folder(const char *path);

/* Keeps the list if there is news for it, in the process that opened the archives. Any thread. */
void st_shards_keep_list(struct st_shards *shards);

/* The archive that a sample is in, and its number there. */
const struct st_shard *st_shards_find(const struct st_shards *shards, uint64_t sample, uint64_t *local);
/* Whether a part's payload is what it was when it was first read, in this process or in one before. True
 * too for what nobody has read yet: its sum is noted now, and kept with the index when all are known, or
 * the archives are closed. Any thread. */
bool st_shard_verify(const struct st_shard *shard, uint64_t part, struct st_bytes payload);

/* Where the span lies; refuses what is damaged or cut off. */
int st_shard_locate(const struct st_shards *shards, const struct st_shard *shard, uint64_t start,
                    uint64_t end, struct st_extent *out, struct stoker_error *err);

#endif
