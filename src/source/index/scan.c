/* scan.c - finds the files of a tree in parallel, with the results of Python's os.walk(followlinks=True)
 *
 * Threads take folders from one list and append the folders they find. Paths are always resolved from
 * the given root, as Python does, so that a link that points back up ends the walk at the same place:
 * where it hits the kernel's limits (40 links per path, PATH_MAX).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/index/scan.h"
#include "source/text/names.h"
#include "base/threads.h"

#include "base/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linux follows at most this many links per path, so a link that points to a folder above it is walked
 * at most this often. More visits mean links that point into each other, a walk that would never end. */
enum { LINKS_IN_PATH = 40 };

struct walk {
    const struct st_scan_options *opt;
    struct st_scan *scan;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t room, taken; /* of scan->dirs */
    uint32_t busy;
    uint64_t loops_seen, loops_allowed;
    int failed;
    struct stoker_error *err;
};

enum kind { KIND_FOLDER, KIND_FILE, KIND_SPECIAL, KIND_ABSENT, KIND_FAILED };

bool st_path_join(char out[PATH_MAX], const char *prefix, const char *path, const char *name)
{
    const char *const parts[] = {prefix, path, name};
    size_t used = 0;
    for (int i = 0; i < 3; i++) {
        const size_t size = strlen(parts[i]);
        if (size >= PATH_MAX - used)
            return false;
        memcpy(out + used, parts[i], size);
        used += size;
    }
    out[used] = '\0';
    return true;
}

struct st_stamp st_stamp_of(const struct stat *info)
{
    return (struct st_stamp){
        .device = info->st_dev,
        .inode = info->st_ino,
        .modified_ns = (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec,
        .changed_ns = (int64_t)info->st_ctim.tv_sec * 1000000000 + info->st_ctim.tv_nsec,
    };
}

/* The errors that os.walk ignores. Others (out of descriptors, a failing disk) would silently lose
 * images, so here they are errors. */
static bool is_ignored(int errnum)
{
    return errnum == EACCES || errnum == EPERM || errnum == ENOENT || errnum == ENOTDIR ||
           errnum == ELOOP || errnum == ENAMETOOLONG;
}

static struct st_scan_dir *new_dir(struct st_scan_dir *parent, const char *name, bool absent)
{
    const size_t above = parent ? parent->path_size : 0, own = strlen(name);
    const bool slash = own > 0 && !absent;
    struct st_scan_dir *dir = st_calloc(1, sizeof *dir + above + own + slash + 1);
    if (!dir)
        return NULL;
    dir->parent = parent;
    dir->label = parent ? parent->label : 0;
    dir->loops = parent ? parent->loops : 0;
    dir->absent = absent;
    dir->ascii = true;
    dir->path_size = above + own + slash;
    if (above)
        memcpy(dir->path, parent->path, above);
    memcpy(dir->path + above, name, own);
    if (slash)
        dir->path[above + own] = '/';
    return dir;
}

static void free_dir(struct st_scan_dir *dir)
{
    free(dir->names);
    free(dir->offsets);
    free(dir);
}

/* Call with the lock held, or before the threads start. */
static bool add_dir(struct walk *walk, struct st_scan_dir *dir)
{
    struct st_scan *scan = walk->scan;
    if (scan->count == walk->room) {
        const uint64_t room = walk->room ? walk->room * 2 : 256;
        struct st_scan_dir **more = st_grow(scan->dirs, room, sizeof *more);
        if (!more)
            return false;
        scan->dirs = more;
        walk->room = room;
    }
    scan->dirs[scan->count++] = dir;
    return true;
}

static bool add_name(struct st_scan_dir *dir, const char *name, size_t size, bool special)
{
    if (dir->names_room - dir->names_size < size + 1) {
        const uint64_t room = dir->names_room * 2 + size + 4096;
        char *more = st_grow(dir->names, room, 1);
        if (!more)
            return false;
        dir->names = more;
        dir->names_room = room;
    }
    if (dir->count == dir->room) {
        const uint64_t room = dir->room * 2 + 256;
        uint64_t *more = st_grow(dir->offsets, room, sizeof *more);
        if (!more)
            return false;
        dir->offsets = more;
        dir->room = room;
    }
    dir->offsets[dir->count++] = dir->names_size | (special ? ST_SCAN_SPECIAL : 0);
    memcpy(dir->names + dir->names_size, name, size + 1);
    dir->names_size += size + 1;
    dir->ascii = dir->ascii && st_name_is_ascii(name, size);
    return true;
}

/* Only links, and file systems that do not report entry types, need a stat. */
static enum kind kind_of(const struct walk *walk, const struct st_scan_dir *dir,
                         const struct dirent *entry, int *errnum)
{
    if (entry->d_type == DT_DIR)
        return KIND_FOLDER;
    if (entry->d_type == DT_REG)
        return KIND_FILE;
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return KIND_SPECIAL;
    char path[PATH_MAX];
    struct stat info;
    *errnum = ENAMETOOLONG;
    if (st_path_join(path, walk->opt->prefix, dir->path, entry->d_name)) {
        if (!stat(path, &info))
            return S_ISDIR(info.st_mode)   ? KIND_FOLDER
                   : S_ISREG(info.st_mode) ? KIND_FILE
                                           : KIND_SPECIAL;
        *errnum = errno;
    }
    return is_ignored(*errnum) ? KIND_ABSENT : KIND_FAILED;
}

static int out_of_memory(const struct walk *walk, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "%s: out of memory while listing the files", walk->opt->prefix);
}

/* Adds one entry to the folder's files or to the list of its folders. */
static int add_entry(struct walk *walk, struct st_scan_dir *dir, const struct dirent *entry,
                   struct st_scan_dir **folders, struct stoker_error *err)
{
    const char *name = entry->d_name;
    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return 0;
    const bool class_level = walk->opt->classes && !dir->parent;
    int errnum = 0;
    const enum kind kind = kind_of(walk, dir, entry, &errnum);
    if (kind == KIND_FAILED || (class_level && kind == KIND_ABSENT && errnum != ENOENT))
        return st_fail_errno(err, errnum, "%s%s%s", walk->opt->prefix, dir->path, name);
    const size_t size = strlen(name);
    if (kind != KIND_FOLDER && !class_level &&
        st_name_has_extension(name, size, walk->opt->extensions) &&
        !add_name(dir, name, size, kind == KIND_SPECIAL))
        return out_of_memory(walk, err);
    if (kind != KIND_FOLDER && kind != KIND_ABSENT)
        return 0;
    struct st_scan_dir *child = new_dir(dir, name, kind == KIND_ABSENT);
    if (!child)
        return out_of_memory(walk, err);
    child->by_link = entry->d_type != DT_DIR;
    child->next = *folders;
    *folders = child;
    return 0;
}

/* A folder reached through a link may already be on the path to here. */
static int check_loop(struct walk *walk, struct st_scan_dir *dir, struct stoker_error *err)
{
    bool loop = false;
    for (const struct st_scan_dir *above = dir->parent; above && dir->by_link && !loop;
         above = above->parent)
        loop = above->stamp.device == dir->stamp.device && above->stamp.inode == dir->stamp.inode;
    if (!loop)
        return 0;
    pthread_mutex_lock(&walk->lock);
    if (dir->loops == 0)
        walk->loops_allowed += LINKS_IN_PATH;
    dir->loops++;
    const bool endless = ++walk->loops_seen > walk->loops_allowed;
    pthread_mutex_unlock(&walk->lock);
    if (!endless)
        return 0;
    return st_fail(err, STOKER_EINVAL,
                   "%s%s: symbolic links point back to folders above them in several ways, so that "
                   "following them never ends; remove these links",
                   walk->opt->prefix, dir->path);
}

static int list_entries(struct walk *walk, struct st_scan_dir *dir, DIR *stream,
                        struct st_scan_dir **folders, struct stoker_error *err)
{
    const struct dirent *entry;
    int rc = 0;
    while (!rc && (errno = 0, entry = readdir(stream)) != NULL)
        rc = add_entry(walk, dir, entry, folders, err);
    if (!rc && errno && errno != ENOENT) /* ENOENT: removed in the meantime */
        rc = st_fail_errno(err, errno, "%s%s", walk->opt->prefix, dir->path);
    if (rc || dir->count < 2)
        return rc;
    uint64_t *scratch = st_calloc(dir->count, 2 * sizeof *scratch);
    if (!scratch)
        return out_of_memory(walk, err);
    st_names_sort(dir->names, dir->offsets, dir->count, dir->ascii, scratch);
    free(scratch);
    return 0;
}

/* Reads one folder: its files into `dir`, its folders into a list owned by the caller. */
static int visit(struct walk *walk, struct st_scan_dir *dir, struct st_scan_dir **folders,
                 struct stoker_error *err)
{
    char path[PATH_MAX];
    struct stat info;
    int fd = -1, errnum = ENAMETOOLONG;
    if (st_path_join(path, walk->opt->prefix, dir->path, "")) {
        fd = st_file_open(path, O_RDONLY | O_DIRECTORY);
        errnum = errno;
    }
    if (fd < 0) {
        if (!dir->parent || !is_ignored(errnum))
            return st_fail_errno(err, errnum, "%s%s", walk->opt->prefix, dir->path);
        pthread_mutex_lock(&walk->lock);
        walk->scan->complete = false;
        pthread_mutex_unlock(&walk->lock);
        return 0;
    }
    /* The stamp is taken before the entries are read, so that a change in between is noticed later. */
    DIR *stream = fstat(fd, &info) ? NULL : fdopendir(fd);
    if (!stream) {
        errnum = errno;
        close(fd);
        return st_fail_errno(err, errnum, "%s%s", walk->opt->prefix, dir->path);
    }
    dir->stamp = st_stamp_of(&info);
    int rc = check_loop(walk, dir, err);
    if (!rc)
        rc = list_entries(walk, dir, stream, folders, err);
    closedir(stream);
    return rc;
}

/* Adds the folders that visit found; on failure frees the rest. Call with the lock held. */
static bool add_folders(struct walk *walk, struct st_scan_dir *folders)
{
    bool added = true;
    while (folders) {
        struct st_scan_dir *dir = folders;
        folders = dir->next;
        dir->next = NULL;
        if (!added || !(added = add_dir(walk, dir)))
            free_dir(dir);
    }
    return added;
}

static void walk_worker(void *context)
{
    struct walk *walk = context;
    struct st_scan *scan = walk->scan;
    pthread_mutex_lock(&walk->lock);
    while (!walk->failed && (walk->taken < scan->count || walk->busy)) {
        if (walk->taken == scan->count) {
            pthread_cond_wait(&walk->changed, &walk->lock);
            continue;
        }
        struct st_scan_dir *dir = scan->dirs[walk->taken++], *folders = NULL;
        if (dir->absent)
            continue;
        struct stoker_error err = {0};
        walk->busy++;
        pthread_mutex_unlock(&walk->lock);
        int rc = visit(walk, dir, &folders, &err);
        pthread_mutex_lock(&walk->lock);
        walk->busy--;
        if (!add_folders(walk, folders) && !rc)
            rc = out_of_memory(walk, &err);
        if (rc && !walk->failed) {
            walk->failed = rc;
            if (walk->err)
                *walk->err = err;
        }
        if (walk->failed || !walk->busy || walk->taken < scan->count)
            pthread_cond_broadcast(&walk->changed);
    }
    pthread_mutex_unlock(&walk->lock);
}

static int by_path(const void *a, const void *b)
{
    const struct st_scan_dir *left = *(struct st_scan_dir *const *)a,
                             *right = *(struct st_scan_dir *const *)b;
    if (left->absent != right->absent)
        return left->absent - right->absent;
    return st_name_compare(left->path, left->path_size - 1, right->path, right->path_size - 1);
}

/* Sorts the classes, which directly follow the root. */
static int number_classes(struct walk *walk, struct stoker_error *err)
{
    struct st_scan *scan = walk->scan;
    qsort(scan->dirs + 1, scan->count - 1, sizeof *scan->dirs, by_path);
    uint64_t classes = 0;
    while (classes + 1 < scan->count && !scan->dirs[classes + 1]->absent) {
        scan->dirs[classes + 1]->label = (uint32_t)classes;
        classes++;
    }
    if (classes > UINT32_MAX)
        return st_fail(err, STOKER_ELIMIT, "%s: more than 4294967295 class folders", walk->opt->prefix);
    scan->class_count = (uint32_t)classes;
    return 0;
}

int st_scan_tree(struct st_scan *out, const struct st_scan_options *opt, struct stoker_error *err)
{
    struct walk walk = {.opt = opt,
                        .scan = out,
                        .err = err,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER};
    *out = (struct st_scan){.complete = true};
    struct st_scan_dir *root = new_dir(NULL, "", false), *folders = NULL;
    if (!root)
        return out_of_memory(&walk, err);
    if (!add_dir(&walk, root)) {
        free_dir(root);
        return out_of_memory(&walk, err);
    }
    int rc = visit(&walk, root, &folders, err);
    if (!add_folders(&walk, folders) && !rc)
        rc = out_of_memory(&walk, err);
    if (!rc && opt->classes)
        rc = number_classes(&walk, err);
    if (rc)
        return rc;
    walk.taken = 1;
    st_threads_run(opt->threads, walk_worker, &walk);
    pthread_cond_destroy(&walk.changed);
    pthread_mutex_destroy(&walk.lock);
    return walk.failed;
}

void st_scan_free(struct st_scan *scan)
{
    for (uint64_t i = 0; i < scan->count; i++)
        free_dir(scan->dirs[i]);
    free(scan->dirs);
    *scan = (struct st_scan){0};
}
