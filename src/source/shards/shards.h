/* shards.h - a sequence of archives: shared by the tar and TFRecord sources
 *
 * Each archive has an index, which is saved next to it (PATH.stoker-index) or in the folder that the
 * user gave, and reused as long as the archive's size, time and a sample of its content have not
 * changed. The indexes of many archives are also saved together (list.h).
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
    const char *name; /* for messages: "tar file" */
    const char *extension; /* of the archive; another program's index has .idx instead */
    uint64_t number; /* in saved indexes; must change when the indexing rules do */
    bool named;      /* samples have keys and parts have suffixes */
    /* How the whole archive is compressed, judged by its first bytes. */
    enum st_packing (*packing)(const uint8_t *head, size_t size);
    /* Finds the samples front to back, with up to `threads` threads. If the archive is damaged, the rest
     * becomes one part that ends at ST_SHARD_LOST; an error means that this is not such an archive at
     * all. */
    int (*scan)(struct st_window *window, uint32_t threads, struct st_shard_builder *into,
                struct stoker_error *err);
    /* Loads the index stored inside the archive, if a spot check confirms it. NULL: archives of this
     * kind have none. */
    bool (*inside)(struct st_window *window, struct st_shard_index *out);
    /* Imports another program's index, if a spot check of the archive confirms it. */
    bool (*import)(struct st_window *window, struct st_bytes text, struct st_shard_builder *into);
};

struct st_shard_sums;

/* Identifies an archive's file in list.h, as of when it was opened. */
struct st_shard_file_id {
    uint64_t inode;
    int64_t changed_ns; /* INT64_MIN: must not match later */
};

struct st_shard {
    struct st_shards *of;
    struct st_held file; /* fd 0: not kept open, see st_shards.files */
    struct st_shard_file_id file_id;
    char *kept; /* the file of its index; NULL: not saved, or only in the list */
    struct st_shard_sums *sums;
    struct st_buffer unpacked; /* the content, if the archive is compressed as a whole */
    bool deferred;             /* while opening: it did not fit while others were being decompressed */
    struct st_shard_index index;
    uint64_t first; /* the number of its first sample */
};

struct st_shard_list;
struct st_shard_files;

struct st_shards {
    const struct st_shard_kind *kind;
    struct st_shard *items;
    uint64_t count, sample_count;
    /* If there are many archives, else NULL: */
    struct st_shard_list *list;   /* holds their indexes */
    struct st_shard_files *files; /* the open files; each is opened when first read */
    char *list_file;              /* NULL: the list is not saved */
    pid_t owner;
    atomic_bool unsaved_sums;      /* checksums were learned that the list does not have */
    atomic_ullong unsummed;        /* archives with unknown checksums */
    struct st_allowance memory;    /* for decompressed archives: opt->max_memory */
    struct st_remote_store *store; /* for archives by URL; NULL: there are none */
};

/* Opens the archives that match the pattern (expand.h), and indexes those without an index in
 * parallel. */
int st_shards_open(struct st_shards *shards, const struct st_shard_kind *kind, const char *pattern,
                   const struct stoker_dataset_options *opt, struct stoker_error *err);
void st_shards_close(struct st_shards *shards);             /* safe after a failed open */
const char *st_shards_note(const struct st_shards *shards); /* for stats(); NULL: no remark */
uint64_t st_shards_memory(const struct st_shards *shards);  /* bytes of decompressed archives */

/* Whether it is a folder, which is never an archive whatever its name. */
bool st_shard_is_folder(const char *path);

/* Saves the list if it is out of date; only in the process that opened the archives. Any thread. */
void st_shards_keep_list(struct st_shards *shards);

/* The archive that contains a sample, and the sample's number in it. */
const struct st_shard *st_shards_find(const struct st_shards *shards, uint64_t sample, uint64_t *local);
/* Whether a part's payload is the same as when it was first read, in this process or an earlier one.
 * Also true on the first read: the checksum is recorded then, and saved with the index when all are
 * known or when the archives are closed. Any thread. */
bool st_shard_verify(const struct st_shard *shard, uint64_t part, struct st_bytes payload);

/* Where the span is; fails if it is damaged or truncated. */
int st_shard_locate(const struct st_shards *shards, const struct st_shard *shard, uint64_t start,
                    uint64_t end, struct st_extent *out, struct stoker_error *err);

#endif
