/* scan.h - finds the files of a tree, in parallel, as Python's os.walk(followlinks=True) does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SCAN_H
#define ST_SOURCE_SCAN_H

#include "base/err.h"

#include <limits.h>

/* What tells whether a folder's entries have changed. All zero: a link that leads nowhere. */
struct st_stamp {
    uint64_t device, inode;
    int64_t modified_ns, changed_ns;
};

/* One folder, or one link that leads nowhere (it may one day lead to a folder). */
struct st_scan_dir {
    struct st_scan_dir *parent, *next;
    struct st_stamp stamp;
    uint32_t label;
    uint32_t loops; /* how often the way here passed a folder that it was in already */
    bool by_link, absent;
    bool ascii;  /* all names are */
    char *names; /* the files that count, terminated one by one, and where each begins: sorted */
    uint64_t names_size, names_room;
    uint64_t *offsets; /* with ST_SCAN_ODD where the entry is no plain file */
    uint64_t count, room;
    size_t path_size;
    char path[]; /* below the root; "" for the root, else "a/b/", for a link "a/b" */
};
#define ST_SCAN_ODD (1ull << 63)

struct st_scan_options {
    const char *prefix; /* the root with a '/' at its end */
    const char *const *extensions;
    uint32_t threads;
    bool classes; /* the root's folders are classes, and its files do not count */
};

struct st_scan {
    struct st_scan_dir **dirs; /* in the order they were found, the root first */
    uint64_t count;
    uint32_t class_count; /* the classes are dirs[1] to dirs[class_count], in order */
    bool complete;        /* no folder had to be left out */
};

/* Folders that may not be read, or vanish meanwhile, are left out, as os.walk does. */
int st_scan_tree(struct st_scan *out, const struct st_scan_options *opt, struct stoker_error *err);
void st_scan_free(struct st_scan *scan); /* safe after a failed scan */

/* "prefix" "path" "name" into `out`; false when that is longer than a path may be. */
bool st_path_join(char out[PATH_MAX], const char *prefix, const char *path, const char *name);
struct stat;
struct st_stamp st_stamp_of(const struct stat *info);

#endif
