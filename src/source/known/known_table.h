/* known_table.h - internals of known.h: one table and its file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_KNOWN_KNOWN_TABLE_H
#define ST_SOURCE_KNOWN_KNOWN_TABLE_H

#include "source/known/known.h"

#include <sys/types.h>

enum { ST_KNOWN_HEAD = 32 }; /* bytes of the file's header */

struct st_known {
    uint64_t count, page_count;
    _Atomic uint32_t *sums;
    _Atomic uint64_t known; /* samples that are */
    _Atomic uint8_t *pages; /* enum page */
    const char *file;       /* the dataset's; NULL: in memory only */
    uint8_t head[ST_KNOWN_HEAD];
    atomic_long sharing; /* 0, or the process with a thread that uses these: */
    dev_t device;        /* these three: of the file, after the last call */
    ino_t inode;
    off_t size;
    int64_t seen_ns;  /* the file's time when the last round of reading it began */
    uint64_t stretch; /* where the next call starts */
    uint64_t left;    /* stretches to be read in this round */
    /* For a dataset made of others, which has no table: */
    const struct stoker_dataset *whole; /* NULL: it has a table */
    struct st_known **parts;
};

/* An empty table; NULL: out of memory. `file` must outlive it. */
struct st_known *st_known_table_new(uint64_t count, const char *file, uint64_t key);
/* 0: unknown. */
uint32_t st_known_table_get(const struct st_known *table, uint64_t sample);
/* 0: forgets the sample. */
void st_known_table_put(struct st_known *table, uint64_t sample, uint32_t sum);
/* Exchanges entries with the file, for at most `limit` stretches of pages. */
void st_known_table_share(struct st_known *table, uint64_t limit);
void st_known_table_free(struct st_known *table); /* NULL is allowed */

#endif
