/* manifest.c - CSV, TSV and JSON lines that list files and their labels
 *
 * One record is one sample. One column holds the path of a file (relative to the manifest's folder, or
 * absolute) or its URL; the others hold labels, numbers or text. In a manifest opened by URL, paths are
 * relative to that URL and never refer to local files. Fields name the columns: the file column is the
 * first that is requested as image or audio, otherwise the first of all. The default is a column with
 * one of the common names for files, and one with a common name for labels.
 *
 * A column is read as requested (label=int, score=float, caption=text, boxes=json), otherwise as
 * integers, numbers or text, whichever all its non-empty words are. A label column, or one that is
 * requested as integers, may contain words instead: if most of them are not integers (if requested: if
 * none is), they are classes, numbered in sorted order. A row whose word is empty or not a number in a
 * numeric column, or empty in a class column, is damaged.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/table/table.h"
#include "source/kinds.h"
#include "source/text/names.h"
#include "source/remote/url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *path_of(const struct st_manifest *manifest, uint64_t sample)
{
    return (const char *)st_manifest_cell(manifest, sample, manifest->path_field).data;
}

/* Whether a row's file is on a server. */
static bool is_remote(const struct st_manifest *manifest, uint64_t sample)
{
    return manifest->store && !st_manifest_is_damaged(manifest, sample) &&
           (st_remote_is_url(manifest->base) || st_remote_is_url(path_of(manifest, sample)));
}

/* ---- opening ------------------------------------------------------------------------------------ */

static int find_base(struct st_manifest *manifest, const char *path, struct stoker_error *err)
{
    const char *slash = strrchr(path, '/');
    manifest->base = st_remote_is_url(path) ? st_url_folder(path)
                                            : strndup(path, slash ? (size_t)(slash - path) + 1 : 0);
    return manifest->base ? 0 : st_manifest_no_memory(manifest, err);
}

/* Opens connections, if any row needs them. */
static int open_objects(struct st_manifest *manifest, const struct stoker_dataset_options *opt,
                        struct stoker_error *err)
{
    bool remote = manifest->store != NULL;
    for (uint64_t i = 0; i < manifest->count && !remote; i++)
        remote = !st_manifest_is_damaged(manifest, i) && st_remote_is_url(path_of(manifest, i));
    if (!remote)
        return 0;
    const int rc = manifest->store ? 0 : st_remote_store_open(&manifest->store, opt, err);
    return rc ? rc
              : st_remote_set_open(&manifest->objects, manifest->store, manifest->file.path,
                                   manifest->count, err);
}

static int open_manifest(struct st_manifest *manifest, const char *path, char separator,
                         const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    manifest->separator = separator;
    int rc = st_remote_is_url(path) ? st_remote_store_open(&manifest->store, opt, err) : 0;
    if (!rc)
        rc = st_held_open_any(&manifest->file, path, manifest->store, opt, err);
    if (!rc)
        rc = find_base(manifest, path, err);
    if (!rc)
        rc = st_manifest_read(manifest, opt->fields, err);
    if (!rc)
        rc = st_manifest_make_fields(manifest, err);
    if (!rc)
        rc = st_manifest_settle(manifest, err);
    return rc ? rc : open_objects(manifest, opt, err);
}

static const char *const tsv_extensions[] = {".tsv", ".tsv.gz", ".tsv.zst", NULL};
static const char *const csv_extensions[] = {".csv", ".csv.gz", ".csv.zst", NULL};
static const char *const json_extensions[] = {".jsonl",     ".ndjson",     ".jsonl.gz", ".jsonl.zst",
                                              ".ndjson.gz", ".ndjson.zst", NULL};

static int csv_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                    struct stoker_error *err)
{
    const bool tabs = st_name_has_extension(path, strlen(path), tsv_extensions);
    return open_manifest(self, path, tabs ? '\t' : ',', opt, err);
}

static int jsonl_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                      struct stoker_error *err)
{
    return open_manifest(self, path, 0, opt, err);
}

static bool csv_matches(const char *path, const uint8_t *head, size_t size)
{
    (void)head;
    return (size || st_remote_is_url(path)) &&
           (st_name_has_extension(path, strlen(path), csv_extensions) ||
            st_name_has_extension(path, strlen(path), tsv_extensions));
}

static bool jsonl_matches(const char *path, const uint8_t *head, size_t size)
{
    (void)head;
    return (size || st_remote_is_url(path)) &&
           st_name_has_extension(path, strlen(path), json_extensions);
}

/* ---- samples ------------------------------------------------------------------------------------ */

static uint64_t manifest_count(const void *self) { return ((const struct st_manifest *)self)->count; }

/* The first integer column; for a damaged row NO_LABEL. */
static int64_t manifest_label(const void *self, uint64_t sample)
{
    enum { NO_LABEL = -100 };
    const struct st_manifest *manifest = self;
    if (st_manifest_is_damaged(manifest, sample))
        return NO_LABEL;
    for (uint32_t k = 0; k < manifest->requested.count; k++)
        if (manifest->columns[k].wholes)
            return manifest->columns[k].wholes[sample];
    return 0;
}

/* Builds the path or URL of the file; false: it is too long. */
static bool location_of(const struct st_manifest *manifest, uint64_t sample, char *out, size_t room)
{
    const char *path = path_of(manifest, sample);
    if (st_remote_is_url(manifest->base) && !st_remote_is_url(path))
        return st_url_join(out, room, manifest->base, path);
    const bool relative = path[0] != '/' && !st_remote_is_url(path);
    return (size_t)snprintf(out, room, "%s%s", relative ? manifest->base : "", path) < room;
}

static size_t manifest_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    const struct st_manifest *manifest = self;
    char place[PATH_MAX], name[PATH_MAX];
    int length;
    if (st_manifest_is_damaged(manifest, sample) || !location_of(manifest, sample, place, sizeof place))
        length = snprintf(buffer, size, "%s: line %llu", manifest->file.path,
                          st_manifest_line(manifest, sample));
    else
        length = snprintf(buffer, size, "%s",
                          is_remote(manifest, sample) ? st_url_public(place, name) : place);
    return length > 0 ? (size_t)length : 0;
}

static int manifest_locate(const void *self, uint64_t sample, struct st_extent *out,
                           struct stoker_error *err)
{
    const struct st_manifest *manifest = self;
    if (st_manifest_is_damaged(manifest, sample))
        return st_manifest_why(manifest, sample, err);
    if (!location_of(manifest, sample, out->path, sizeof out->path))
        return st_fail_errno(err, ENAMETOOLONG, "%s: line %llu: %.200s...", manifest->file.path,
                             st_manifest_line(manifest, sample), path_of(manifest, sample));
    out->memory = NULL;
    out->objects = is_remote(manifest, sample) ? manifest->objects : NULL;
    out->offset = out->objects ? sample : 0;
    out->length = ST_WHOLE_FILE;
    return 0;
}

static const struct st_field *manifest_fields(const void *self, uint32_t *count)
{
    const struct st_manifest *manifest = self;
    *count = manifest->requested.count;
    return manifest->fields;
}

static int manifest_split(const void *self, uint64_t sample, struct st_bytes raw,
                          struct st_buffer *scratch, struct st_piece *pieces, struct stoker_error *err)
{
    const struct st_manifest *manifest = self;
    (void)scratch, (void)err;
    for (uint32_t k = 0; k < manifest->requested.count; k++) {
        const struct st_manifest_column *column = &manifest->columns[k];
        pieces[k] = (struct st_piece){
            .bytes = k == manifest->path_field ? raw : st_manifest_cell(manifest, sample, k)};
        if (column->wholes)
            pieces[k].whole = column->wholes[sample];
        else if (column->reals)
            pieces[k].real = column->reals[sample];
        else if (manifest->fields[k].kind == ST_FIELD_JSON && !pieces[k].bytes.size)
            pieces[k].bytes = (struct st_bytes){(const uint8_t *)"null", 4}; /* an empty word */
    }
    return 0;
}

static uint32_t manifest_class_count(const void *self)
{
    return ((const struct st_manifest *)self)->class_count;
}

static const char *manifest_class_name(const void *self, uint32_t index)
{
    return ((const struct st_manifest *)self)->classes[index];
}

static const char *manifest_note(const void *self)
{
    const struct st_manifest *manifest = self;
    return manifest->store ? st_remote_store_note(manifest->store) : NULL;
}

static void manifest_close(void *self)
{
    struct st_manifest *manifest = self;
    for (uint32_t k = 0; k < ST_FIELDS_MAX; k++) {
        free(manifest->columns[k].wholes);
        free(manifest->columns[k].reals);
    }
    for (uint64_t i = 0; i < manifest->damage_count; i++)
        free(manifest->damages[i].why);
    free(manifest->damages);
    free(manifest->classes);
    free(manifest->lines);
    free(manifest->base);
    st_cells_free(&manifest->cells);
    st_field_list_free(&manifest->requested);
    st_held_close(&manifest->file);
    st_remote_set_close(manifest->objects);
    st_remote_store_drop(manifest->store);
}

#define MANIFEST(scheme_, matches_, open_)                                                              \
    {                                                                                                   \
        .scheme = (scheme_), .self_size = sizeof(struct st_manifest), .matches = (matches_),            \
        .open = (open_), .count = manifest_count, .label = manifest_label, .name = manifest_name,       \
        .locate = manifest_locate, .fields = manifest_fields, .split = manifest_split,                  \
        .class_count = manifest_class_count, .class_name = manifest_class_name, .note = manifest_note,  \
        .close = manifest_close,                                                                        \
    }

const struct st_source st_source_csv = MANIFEST("csv", csv_matches, csv_open);
const struct st_source st_source_jsonl = MANIFEST("jsonl", jsonl_matches, jsonl_open);
