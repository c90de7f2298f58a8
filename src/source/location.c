/* location.c - what a path or URI stands for: the kind of dataset, and its files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/location.h"
#include "base/file.h"
#include "source/held.h"
#include "source/kinds.h"
#include "source/text/names.h"
#include "source/index/scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEAD = 4096 };

static bool is_folder(const char *path)
{
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

/* ---- kinds -------------------------------------------------------------------------------------- */

/* The kind named by "scheme:...", and where the path begins; NULL if there is no kind of that name. */
static const struct st_source *kind_of(const char *uri, const char **path)
{
    for (const struct st_source *const *kind = st_sources; *kind; kind++) {
        const size_t size = strlen((*kind)->scheme);
        if (!strncmp(uri, (*kind)->scheme, size) && uri[size] == ':') {
            *path = uri + size + 1;
            return *kind;
        }
    }
    return NULL;
}

/* The kind that a path without a scheme looks like; NULL if none. */
static const struct st_source *kind_matching(const char *path, const uint8_t *head, size_t size)
{
    for (const struct st_source *const *kind = st_sources; *kind; kind++)
        if ((*kind)->matches && (*kind)->matches(path, head, size))
            return *kind;
    return NULL;
}

/* Judged by the name of a non-empty file only. */
static const struct st_source *kind_by_name(const char *path)
{
    static const uint8_t nothing[1];
    return kind_matching(path, nothing, sizeof nothing);
}

static bool is_tree(const struct st_source *kind)
{
    return kind == &st_source_folder || kind == &st_source_flat;
}

static bool is_table(const struct st_source *kind)
{
    return kind == &st_source_csv || kind == &st_source_jsonl;
}

/* ---- unsupported files -------------------------------------------------------------------------- */

static const struct {
    const char *magic, *name, *remedy;
} foreign_formats[] = {
    {"PAR1", "a Parquet file",
     "write the paths and labels as CSV or JSON lines, or the samples as tar files (webdataset)"},
    {"ARROW1", "an Arrow file",
     "write the paths and labels as CSV or JSON lines, or the samples as tar files (webdataset)"},
    {"SQLite format 3", "an SQLite database", "write the paths and labels as CSV or JSON lines"},
    {"\xff\xd8\xff", "a JPEG image", "open the folder that it is in"},
    {"\x89PNG", "a PNG image", "open the folder that it is in"},
    {"\x80\x02", "a pickle",
     "pickles are never loaded, because they can run code: write npy or HDF5 files"},
    {"\x80\x04", "a pickle",
     "pickles are never loaded, because they can run code: write npy or HDF5 files"},
    {"\x1f\x8b", "a gzip file",
     "decompress it, or put the kind in front of the path, as in tar: or csv:"},
    {"\x28\xb5\x2f\xfd", "a zstd file",
     "decompress it, or put the kind in front of the path, as in tar: or csv:"},
};

static int refuse_file(const char *path, const uint8_t *head, size_t size, struct stoker_error *err)
{
    if (!size)
        return st_fail(err, STOKER_ECORRUPT, "%.700s: the file is empty", path);
    for (size_t i = 0; i < sizeof foreign_formats / sizeof *foreign_formats; i++) {
        const size_t length = strlen(foreign_formats[i].magic);
        if (size >= length && !memcmp(head, foreign_formats[i].magic, length))
            return st_fail(err, STOKER_EUNSUPPORTED, "%.600s: Stoker cannot read %s as a dataset; %s",
                           path, foreign_formats[i].name, foreign_formats[i].remedy);
    }
    return st_fail(
        err, STOKER_EUNSUPPORTED,
        "%.700s: cannot tell the kind of dataset from its name or content; put the kind in front, "
        "as in tar:%.100s",
        path, strlen(path) < 100 ? path : "PATH");
}

static int missing(const char *path, struct stoker_error *err)
{
    if (path[0] == '~')
        return st_fail(err, STOKER_ENOTFOUND,
                       "%.700s: no such file or directory; '~' is not expanded here: give the full path",
                       path);
    return st_fail_errno(err, ENOENT, "%s", path);
}

/* The kind of the first file, judged by its name or its first bytes. */
static int find_kind(struct st_location *place, const struct stoker_dataset_options *opt,
                     struct stoker_error *err)
{
    char name[PATH_MAX];
    uint8_t head[HEAD];
    struct st_held file = {0};
    const char *path = place->paths.items[0];
    const bool remote = st_remote_is_url(path);
    const int length = remote ? (int)strcspn(path, "?#") : (int)strlen(path);
    if (snprintf(name, sizeof name, "%.*s", length, path) >= (int)sizeof name)
        return st_fail(err, STOKER_EINVAL, "%.300s...: path too long", path);
    if (remote && (place->kind = kind_by_name(name)))
        return 0; /* without a request to the server */
    if (!remote && is_folder(path) && (place->kind = kind_matching(path, head, 0)))
        return 0;
    int rc = st_held_open_any(&file, path, NULL, opt, err);
    const size_t size = file.size < sizeof head ? (size_t)file.size : sizeof head;
    if (!rc)
        rc = st_held_read(&file, 0, head, size, err);
    st_held_close(&file);
    if (rc == STOKER_ENOTFOUND && !remote)
        return missing(path, err);
    if (!rc && !(place->kind = kind_matching(name, head, size)))
        rc = refuse_file(name, head, size, err);
    return rc;
}

/* ---- folders ------------------------------------------------------------------------------------ */

/* What a folder contains, apart from dot files and the files that indexes and databases put there. */
struct listing {
    const struct st_source *wanted; /* NULL: any kind except tables */
    const struct st_source *kind;   /* of the archives */
    const struct st_source *other;  /* NULL, or a second kind that was found */
    const struct st_source *table;  /* NULL, or the kind of a table */
    struct st_paths archives;
    uint64_t folders, images, parquet;
    bool all; /* keep counting even when it is already clear that this is a folder of images */
};

static bool ends_with(const char *name, const char *ending)
{
    const size_t size = strlen(name), tail = strlen(ending);
    return size >= tail && !strcmp(name + size - tail, ending);
}

static int classify(struct listing *list, const char *path, const char *name, bool folder,
                   struct stoker_error *err)
{
    const struct st_source *kind = folder ? kind_matching(path, NULL, 0) : kind_by_name(path);
    const bool wanted = kind && (list->wanted ? kind == list->wanted : !is_table(kind));
    if (wanted) {
        list->other = list->kind && list->kind != kind ? kind : list->other;
        list->kind = list->kind ? list->kind : kind;
        return st_paths_add(&list->archives, path, strlen(path), err);
    }
    if (kind && is_table(kind))
        list->table = kind;
    list->folders += folder;
    list->images += !folder && st_name_has_extension(name, strlen(name), st_image_extensions);
    list->parquet += ends_with(name, ".parquet") || ends_with(name, ".arrow");
    return 0;
}

static bool is_ignored(const char *name)
{
    return name[0] == '.' || ends_with(name, ".stoker-index") || ends_with(name, ".stoker-known") ||
           ends_with(name, ".idx") || ends_with(name, "-lock") || !strcmp(name, "lock.mdb");
}

static int list_folder(struct listing *list, const char *folder, struct stoker_error *err)
{
    DIR *dir = st_folder_open(folder);
    int rc = 0;
    if (!dir)
        return st_fail_errno(err, errno, "%s", folder);
    while (!rc && (list->all || list->wanted || (!list->folders && !list->images))) {
        char path[PATH_MAX];
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry) {
            rc = errno ? st_fail_errno(err, errno, "%s", folder) : STOKER_END;
            break;
        }
        if (is_ignored(entry->d_name) ||
            !st_path_join(path, folder, folder[strlen(folder) - 1] == '/' ? "" : "/", entry->d_name))
            continue;
        const bool plain = entry->d_type == DT_REG;
        rc = classify(list, path, entry->d_name, entry->d_type == DT_DIR || (!plain && is_folder(path)),
                      err);
    }
    closedir(dir);
    st_paths_sort(&list->archives);
    return rc == STOKER_END ? 0 : rc;
}

static int take_listing(struct st_location *place, struct listing *list, struct stoker_error *err)
{
    if (place->kind && !list->archives.count)
        return st_fail(err, STOKER_ENOTFOUND, "%.700s: the folder contains no %s files", place->path,
                       place->kind->scheme);
    if (!place->kind && (list->folders || list->images || !list->kind)) {
        place->kind = &st_source_folder;
        return 0;
    }
    if (list->other)
        return st_fail(
            err, STOKER_EINVAL,
            "%.500s: contains archives of several kinds, such as %s and %s; choose one kind, as in "
            "%s:%.300s",
            place->path, list->kind->scheme, list->other->scheme, list->kind->scheme, place->path);
    place->kind = list->kind;
    place->folder = true;
    place->paths = list->archives;
    list->archives = (struct st_paths){0};
    return 0;
}

/* The files of a folder that `stoker pack` wrote. */
static int take_pack(struct st_location *place, struct stoker_error *err)
{
    const struct st_pack *pack = &place->pack;
    char path[PATH_MAX];
    if (!pack->shard_count)
        return st_fail(
            err, STOKER_EINVAL,
            "%.500s: no file of this pack is finished; run the same 'stoker pack' command again",
            place->path);
    const struct st_source *kind = kind_by_name(pack->shards[0].name);
    if (!kind || (place->kind && place->kind != kind))
        return st_fail(err, STOKER_EINVAL, "%.500s: was written by 'stoker pack' and contains %s%s%s",
                       place->path, pack->shards[0].name, place->kind ? ", not files of kind " : "",
                       place->kind ? place->kind->scheme : "");
    place->kind = kind;
    place->folder = true;
    int rc = 0;
    if (kind == &st_source_lmdb)
        return st_paths_add(&place->paths, place->path, strlen(place->path), err);
    for (uint64_t i = 0; i < pack->shard_count + pack->beside.count && !rc; i++) {
        const char *name = i < pack->shard_count ? pack->shards[i].name
                                                 : pack->beside.files[i - pack->shard_count].name;
        rc = st_path_join(path, place->path, "/", name)
                 ? st_paths_add(&place->paths, path, strlen(path), err)
                 : st_fail(err, STOKER_EINVAL, "%.500s...: path too long", place->path);
    }
    return rc;
}

static int find_in_folder(struct st_location *place, struct stoker_error *err)
{
    int rc = st_pack_read(&place->pack, place->path, err);
    if (rc != STOKER_END)
        return rc ? rc : take_pack(place, err);
    const struct st_source *whole =
        kind_matching(place->path, NULL, 0); /* an LMDB database is a folder */
    if (whole && (!place->kind || place->kind == whole)) {
        place->kind = whole;
        return st_paths_add(&place->paths, place->path, strlen(place->path), err);
    }
    struct listing list = {.wanted = place->kind};
    rc = list_folder(&list, place->path, err);
    if (!rc)
        rc = take_listing(place, &list, err);
    st_paths_free(&list.archives);
    return rc;
}

void st_location_hint(const char *folder, char *out, size_t size)
{
    struct listing list = {.all = true};
    struct st_pack pack;
    const int packed = st_pack_read(&pack, folder, NULL);
    st_pack_free(&pack);
    out[0] = '\0';
    if (packed != STOKER_END)
        snprintf(out, size, "; it was written by 'stoker pack': open it by its path, without 'folder:'");
    else if (list_folder(&list, folder, NULL) || list.folders)
        out[0] = '\0';
    else if (list.kind)
        snprintf(out, size, "; it contains %s files: open %s:%.300s", list.kind->scheme,
                 list.kind->scheme, folder);
    else if (list.parquet)
        snprintf(out, size, "; it contains Parquet or Arrow files: %s", foreign_formats[0].remedy);
    else if (list.table)
        snprintf(out, size, "; it contains a table: open that file");
    else if (list.images)
        snprintf(out, size, "; it contains images without classes: open flat:%.300s", folder);
    st_paths_free(&list.archives);
}

/* ---- find and free ------------------------------------------------------------------------------ */

static bool looks_like_scheme(const char *uri)
{
    const size_t size = strspn(uri, "abcdefghijklmnopqrstuvwxyz0123456789+");
    return size > 0 && uri[size] == ':' && uri[size + 1] != ':';
}

static int refuse_scheme(const char *uri, struct stoker_error *err)
{
    char known[200] = "";
    const char *colon = strchr(uri, ':');
    if (!strncmp(colon, "://", 3))
        return st_fail(
            err, STOKER_EUNSUPPORTED,
            "%.600s: unsupported URL; datasets are read from local files and from http://, https:// "
            "and s3:// URLs. Copy the data, or mount them and give the path",
            uri);
    for (size_t i = 0, at = 0; st_sources[i] && at < sizeof known; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "",
                               st_sources[i]->scheme);
    return st_fail(
        err, STOKER_EUNSUPPORTED,
        "%.600s: no such file or folder, and no such kind of dataset; this build supports %s", uri,
        known);
}

int st_location_find(struct st_location *place, const char *uri,
                     const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    struct stat info;
    *place = (struct st_location){.path = uri};
    place->kind = kind_of(uri, &place->path);
    const char *path = place->path;
    if (!*path)
        return st_fail(err, STOKER_EINVAL, "the path of the dataset is empty");
    if (is_tree(place->kind))
        return 0;
    const bool remote = st_remote_is_url(path), there = !remote && !stat(path, &info);
    if (there && S_ISDIR(info.st_mode))
        return find_in_folder(place, err);
    if (!there && !remote && !place->kind && looks_like_scheme(uri))
        return refuse_scheme(uri, err);
    const int rc = there ? st_paths_add(&place->paths, path, strlen(path), err)
                         : st_expand(&place->paths, path, err);
    return rc || place->kind ? rc : find_kind(place, opt, err);
}

void st_location_free(struct st_location *place)
{
    st_paths_free(&place->paths);
    st_pack_free(&place->pack);
}
