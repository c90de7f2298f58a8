/* scan.h - finds the files of a tree in parallel, with the results of Python's os.walk(followlinks=True)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_INDEX_SCAN_H
#define ST_SOURCE_INDEX_SCAN_H

#include "base/err.h"

#include <limits.h>

/* Identifies the state of a folder's entries: it changes when they do. All zero: a dangling link. */
struct st_stamp {
    uint64_t device, inode;
    int64_t modified_ns, changed_ns;
};

/* One folder, or one dangling link (which may later point to a folder). */
struct st_scan_dir {
    struct st_scan_dir *parent, *next;
    struct st_stamp stamp;
    uint32_t label;
    uint32_t loops; /* how many folders on the path to here were visited earlier on the same path */
    bool by_link, absent;
    bool ascii;  /* all names are ASCII */
    char *names; /* the names of the matching files, each NUL-terminated */
    uint64_t names_size, names_room;
    uint64_t *offsets; /* of each name, sorted; ST_SCAN_SPECIAL is set for special files */
    uint64_t count, room;
    size_t path_size;
    char path[]; /* relative to the root: "" for the root, else "a/b/"; for a dangling link "a/b" */
};
#define ST_SCAN_SPECIAL (1ull << 63)

struct st_scan_options {
    const char *prefix; /* the root, ending in '/' */
    const char *const *extensions;
    uint32_t threads;
    bool classes; /* the root's folders are classes, and its files are ignored */
};

struct st_scan {
    struct st_scan_dir **dirs; /* in the order found, the root first */
    uint64_t count;
    uint32_t class_count; /* the classes are dirs[1] to dirs[class_count], in order */
    bool complete;        /* no folder was skipped */
};

/* Folders that cannot be accessed or disappear during the scan are skipped, as by os.walk. */
int st_scan_tree(struct st_scan *out, const struct st_scan_options *opt, struct stoker_error *err);
void st_scan_free(struct st_scan *scan); /* safe after a failed scan */

/* Concatenates prefix, path and name; false if the result exceeds PATH_MAX. */
bool st_path_join(char out[PATH_MAX], const char *prefix, const char *path, const char *name);
struct stat;
struct st_stamp st_stamp_of(const struct stat *info);

#endif
