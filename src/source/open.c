/* open.c - opens what a path names: one file, several as one dataset, or a folder that `stoker pack`
 * wrote
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/text.h"
#include "source/arrays/arrays.h"
#include "source/kinds.h"
#include "source/known/known.h"
#include "source/location.h"
#include "source/text/names.h"
#include "source/remote/remote.h"

#include <stdlib.h>
#include <string.h>

static int open_one(struct stoker_dataset **out, const struct st_source *kind, const char *path,
                    const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    struct stoker_dataset *data = st_dataset_new(kind);
    if (!data)
        return st_fail(err, STOKER_ENOMEM, "%.500s: out of memory", path);
    const int rc = kind->open(data->self, path, opt, err);
    if (rc)
        st_dataset_drop(data);
    else
        *out = data;
    return rc;
}

/* ---- several files as one dataset -------------------------------------------------------------- */

/* With different classes, the same label would silently mean different things. */
static int compare_classes(const struct stoker_dataset *first, const struct stoker_dataset *part,
                           const char *first_path, const char *path, struct stoker_error *err)
{
    const uint32_t count = st_dataset_class_count(first), other = st_dataset_class_count(part);
    uint32_t i = 0;
    while (i < count && i < other &&
           !strcmp(st_dataset_class_name(first, i), st_dataset_class_name(part, i)))
        i++;
    if (i == count && i == other)
        return 0;
    return st_fail(
        err, STOKER_EINVAL,
        "%.300s: its classes differ from those of %.300s (label %u is %.100s here, %.100s there), so "
        "one label would mean two things; merge the files, or open them one by one",
        path, first_path, i, i < other ? st_dataset_class_name(part, i) : "none",
        i < count ? st_dataset_class_name(first, i) : "none");
}

static int compare_fields(const struct stoker_dataset *first, const struct stoker_dataset *part,
                          const char *first_path, const char *path, struct stoker_error *err)
{
    uint32_t count, other;
    const struct st_field *left = first->source->fields(first->self, &count);
    const struct st_field *right = part->source->fields(part->self, &other);
    uint32_t i = 0;
    while (i < count && i < other && !strcmp(left[i].name, right[i].name) &&
           left[i].kind == right[i].kind)
        i++;
    if (i == count && i == other)
        return 0;
    return st_fail(
        err, STOKER_EINVAL,
        "%.300s: its fields differ from those of %.300s (field %u is %.100s here, %.100s there); "
        "select the fields that both have with fields=",
        path, first_path, i, i < other ? right[i].name : "missing",
        i < count ? left[i].name : "missing");
}

static int open_parts(struct stoker_dataset **out, const struct st_source *kind,
                      const struct st_paths *paths, const struct stoker_dataset_options *opt,
                      struct stoker_error *err)
{
    struct stoker_dataset **parts = st_calloc(paths->count, sizeof *parts);
    int rc = parts ? 0
                   : st_fail(err, STOKER_ENOMEM, "out of memory for %llu files",
                             (unsigned long long)paths->count);
    uint64_t opened = 0;
    for (; opened < paths->count && !rc; opened++) {
        const char *path = paths->items[opened];
        rc = open_one(&parts[opened], kind, path, opt, err);
        if (!rc)
            rc = compare_classes(parts[0], parts[opened], paths->items[0], path, err);
        if (!rc && kind->fields)
            rc = compare_fields(parts[0], parts[opened], paths->items[0], path, err);
    }
    if (!rc)
        rc = st_dataset_concat(out, parts, (uint32_t)paths->count, err);
    for (uint64_t i = 0; i < opened; i++)
        st_dataset_drop(parts[i]);
    free(parts);
    return rc;
}

/* For kinds whose `open` takes a list. */
static char *join(const struct st_paths *paths)
{
    uint64_t size = 1;
    for (uint64_t i = 0; i < paths->count; i++)
        size += strlen(paths->items[i]) + 2;
    char *list = st_calloc(size, 1), *at = list;
    for (uint64_t i = 0; list && i < paths->count; i++)
        at = stpcpy(stpcpy(at, i ? "::" : ""), paths->items[i]);
    return list;
}

static int open_list(struct stoker_dataset **out, const struct st_location *place,
                     const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    if (!place->folder)
        return open_one(out, place->kind, place->path, opt, err);
    char *list = join(&place->paths);
    const int rc = list ? open_one(out, place->kind, list, opt, err)
                        : st_fail(err, STOKER_ENOMEM, "%.500s: out of memory", place->path);
    free(list);
    return rc;
}

/* ---- classes ------------------------------------------------------------------------------------ */

static bool lists(const struct st_pack *pack, const char *name)
{
    bool found = false;
    for (uint64_t i = 0; i < pack->shard_count && !found; i++)
        found = !strcmp(pack->shards[i].name, name);
    for (uint32_t i = 0; i < pack->beside.count && !found; i++)
        found = !strcmp(pack->beside.files[i].name, name);
    return found;
}

/* Reads the manifest next to a file of a pack that is opened on its own. One that is damaged, or of
 * another pack, is no reason not to read the file. */
static int read_beside(const char *path, struct st_pack *pack, struct stoker_error *err)
{
    char folder[PATH_MAX];
    struct stoker_error why;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t size = slash ? (size_t)(slash - path) : 0;
    *pack = (struct st_pack){0};
    if (st_remote_is_url(path) || size >= sizeof folder)
        return 0;
    memcpy(folder, path, size);
    strcpy(folder + size, size || !slash ? "" : "/");
    const int rc = st_pack_read(pack, folder[0] ? folder : ".", &why);
    if (rc || !lists(pack, name))
        st_pack_free(pack);
    return st_is_transient(rc) ? st_fail(err, rc, "%s", why.message) : 0;
}

/* Takes the class names from the pack's manifest, for datasets that have none themselves. */
static int take_classes(struct stoker_dataset *data, const struct st_cells *names,
                        struct stoker_error *err)
{
    struct st_cells *own = names->count ? st_calloc(1, sizeof *own) : NULL;
    bool good = own != NULL;
    for (uint64_t i = 0; i < names->count && good; i++) {
        const char *name = st_cells_word(names, i);
        good = st_cells_add(own, name, strlen(name));
    }
    data->classes = own;
    return good || !names->count ? 0 : st_fail(err, STOKER_ENOMEM, "out of memory for the classes");
}

static int find_classes(struct stoker_dataset *data, const struct st_location *place,
                        struct stoker_error *err)
{
    if (place->pack.settings)
        return take_classes(data, &place->pack.classes, err);
    if (!place->paths.count || st_dataset_class_count(data))
        return 0;
    struct st_pack pack;
    int rc = read_beside(place->paths.items[0], &pack, err);
    if (!rc)
        rc = take_classes(data, &pack.classes, err);
    st_pack_free(&pack);
    return rc;
}

/* ---- open ---------------------------------------------------------------------------------- */

/* Opens a tree of files. Where there is none, the message says what the folder contains instead. */
static int open_tree(struct stoker_dataset **out, const struct st_location *place,
                     const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const int rc = open_one(out, place->kind, place->path, opt, err);
    if (err && rc == STOKER_EINVAL) {
        char *end = err->message + strlen(err->message);
        const size_t room = sizeof err->message - strlen(err->message);
        if (place->kind == &st_source_folder)
            st_location_hint(place->path, end, room);
        if (!*end)
            st_others_hint(place->path, opt->extensions ? opt->extensions : st_image_extensions, end,
                           room);
        st_escape_in(err->message, sizeof err->message);
    }
    return rc;
}

int st_location_open(struct stoker_dataset **out, const struct st_location *place,
                  const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const struct st_source *kind = place->kind;
    struct stoker_dataset *data = NULL;
    int rc;
    if (!place->paths.count)
        rc = open_tree(&data, place, opt, err);
    else if (place->pack.settings && kind == &st_source_npy)
        rc = st_arrays_open_set(&data, place->path, &place->pack, opt->fields, err);
    else if (kind->lists)
        rc = open_list(&data, place, opt, err);
    else if (place->paths.count == 1)
        rc = open_one(&data, kind, place->paths.items[0], opt, err);
    else
        rc = open_parts(&data, kind, &place->paths, opt, err);
    if (rc)
        return rc;
    data->kind = kind->scheme;
    st_known_place(data, place, opt);
    rc = find_classes(data, place, err);
    if (rc)
        st_dataset_drop(data);
    else
        *out = data;
    return rc;
}

int st_dataset_open(struct stoker_dataset **out, const char *uri,
                    const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const struct stoker_dataset_options defaults = {.size = sizeof defaults};
    struct st_location place;
    int rc = st_location_find(&place, uri, opt, err);
    if (!rc && place.pack.settings && !place.pack.complete)
        rc = st_fail(
            err, STOKER_EINVAL,
            "%.600s: the pack is incomplete; run the same 'stoker pack' command again, or open the "
            "finished files by name",
            place.path);
    if (!rc)
        rc = st_location_open(out, &place, opt ? opt : &defaults, err);
    st_location_free(&place);
    return rc;
}
