/* manifest.c - resumes what an earlier run left in the folder of a pack
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the folder -------------------------------------------------------------------------------- */

static bool is_partial(const char *name) { return !strncmp(name, ".partial-", 9); }

/* Refuses a folder with other files. Removes unfinished files of a killed run, unless they can be
 * resumed. */
static int look_into(const char *folder, bool known, bool goes_on, struct stoker_error *err)
{
    DIR *dir = st_folder_open(folder);
    int rc = STOKER_OK;
    if (!dir)
        return st_fail_errno(err, errno, "%s", folder);
    struct dirent *entry;
    while (!rc && (errno = 0, entry = readdir(dir)) != NULL) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
            !strcmp(entry->d_name, PACK_LOCK))
            continue;
        if (is_partial(entry->d_name) && !goes_on) {
            if (unlinkat(dirfd(dir), entry->d_name, 0))
                rc = st_fail_errno(err, errno, "%.500s/%.200s", folder, entry->d_name);
        } else if (!known) {
            rc = st_fail(
                err, STOKER_EINVAL,
                "%.500s: contains '%.200s' but no manifest of a pack: choose a new or empty folder",
                folder, entry->d_name);
        }
    }
    if (!rc && errno) /* or files of a killed run would be left unseen */
        rc = st_fail_errno(err, errno, "%s", folder);
    closedir(dir);
    return rc;
}

/* Truncates the ledger to its state when the manifest was written. */
static int cut_ledger(const struct st_pack *manifest, const struct pack_options *opt,
                      struct stoker_error *err)
{
    char path[PATH_MAX];
    const int rc = pack_path(path, opt->folder, PACK_LEDGER, err);
    if (rc)
        return rc;
    int failed;
    do
        failed = manifest->ledger_size ? truncate(path, (off_t)manifest->ledger_size) : unlink(path);
    while (failed && errno == EINTR);
    if (failed && (manifest->ledger_size || errno != ENOENT))
        return st_fail_errno(err, errno, "%s", path);
    return STOKER_OK;
}

/* Files that an earlier run finished must still exist. */
static int find_file(const char *folder, const char *name, uint64_t bytes, struct stoker_error *err)
{
    char path[PATH_MAX];
    struct stat status;
    const int rc = pack_path(path, folder, name, err);
    if (rc)
        return rc;
    const bool there = !lstat(path, &status) && S_ISREG(status.st_mode);
    return there && (uint64_t)status.st_size == bytes ? STOKER_OK : pack_was_changed(path, err);
}

static int find_files(const struct st_pack *m, const char *folder, struct stoker_error *err)
{
    int rc = STOKER_OK;
    for (uint64_t i = 0; i < m->shard_count && !rc; i++)
        rc = find_file(folder, m->shards[i].name, m->shards[i].bytes, err);
    for (uint32_t i = 0; i < m->beside.count && !rc; i++)
        rc = find_file(folder, m->beside.files[i].name, m->beside.files[i].bytes, err);
    return rc;
}

/* The class names of the source. */
static int take_classes(struct st_cells *out, const struct stoker_dataset *data,
                        struct stoker_error *err)
{
    const uint32_t count = stoker_dataset_class_count(data);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = stoker_dataset_class_name(data, i);
        if (!st_cells_add(out, name, strlen(name)))
            return st_fail(err, STOKER_ENOMEM, "out of memory for the classes");
    }
    return STOKER_OK;
}

int pack_manifest_open(struct st_pack *manifest, const struct pack_options *opt,
                       const struct stoker_dataset *data, uint64_t archives,
                       struct stoker_error *err)
{
    char *wanted;
    *manifest = (struct st_pack){0};
    int rc = pack_manifest_settings(&wanted, opt, data, err);
    if (rc)
        return rc;
    rc = st_pack_read(manifest, opt->folder, err);
    const bool ours = rc == STOKER_OK, marked = manifest->mark.positions;
    const bool known = ours && (manifest->shard_count || marked);
    if (known && strcmp(manifest->settings, wanted))
        rc = st_fail(err, STOKER_EINVAL,
                     "%.300s: was started with other settings or other data: use the same options "
                     "again, or choose another folder. It was started with: %.300s",
                     opt->folder, manifest->settings);
    if (known && !rc && manifest->archives != archives)
        rc = st_fail(err, STOKER_EINVAL,
                     "%.300s: %.300s has changed since this pack was started (its size or time): remove "
                     "the folder to start over, or choose another one",
                     opt->folder, opt->source);
    if (!rc || rc == STOKER_END)
        rc = look_into(opt->folder, ours, known && marked, err);
    if (!rc && known)
        rc = find_files(manifest, opt->folder, err);
    if (!rc && ours)
        rc = cut_ledger(manifest, opt, err);
    if (!known) {
        free(manifest->settings);
        manifest->settings = wanted;
        wanted = NULL;
        manifest->archives = archives;
        st_cells_clear(&manifest->classes);
        if (!rc)
            rc = take_classes(&manifest->classes, data, err);
        if (!rc) /* from now on the folder is recognized as ours */
            rc = pack_manifest_store(manifest, opt, err);
    }
    free(wanted);
    return rc;
}
