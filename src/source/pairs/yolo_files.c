/* yolo_files.c - images and their label files, in the layout of YOLO
 *
 * The labels of images/train/1.jpg are in labels/train/1.txt: the last folder of that name in the path
 * counts. Where there is none, they lie beside the images. An image without a label file has no objects.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/pairs/lists.h"
#include "source/pairs/pairs.h"
#include "source/pairs/partners.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Where the last folder named "images" begins in a path; NULL: there is none. */
static const char *images_in(const char *path)
{
    static const char name[] = "images";
    const size_t size = sizeof name - 1;
    const char *found = NULL;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (!strncmp(at, name, size) && (at[size] == '/' || !at[size]))
            found = at;
    }
    return found;
}

/* The path with "labels" in the place of that folder, freed by the caller; NULL: out of memory. */
static char *labels_of(const char *path)
{
    const char *images = images_in(path);
    char *out;
    const int before = images ? (int)(images - path) : 0;
    return asprintf(&out, "%.*s%s%s", before, path, images ? "labels" : "",
                    images ? images + strlen("images") : path) < 0
               ? NULL
               : out;
}

/* ---- a list of images ---------------------------------------------------------------------------- */

struct reading {
    struct st_pairs *out;
    struct st_partners images;
    char *folder; /* of the list, ending in '/' */
    const char *labels;
};

/* The file with the labels of an image, freed by the caller; NULL: out of memory. */
static char *label_file(const struct reading *r, const char *image)
{
    char *path = NULL, *out = NULL;
    if (r->labels) {
        const char *images = images_in(image), *slash = strrchr(image, '/');
        const char *name = images ? images + strlen("images/") : slash ? slash + 1 : image;
        path = asprintf(&path, "%s/%s", r->labels, name) < 0 ? NULL : path;
    } else {
        path = labels_of(image);
    }
    if (path && asprintf(&out, "%.*s.txt", (int)st_partners_stem(path), path) < 0)
        out = NULL;
    free(path);
    return out;
}

static int add_line(void *context, char *line, unsigned long long number, struct stoker_error *err)
{
    struct reading *r = context;
    struct stat info;
    char *image = NULL, *target = NULL;
    const char *name = !strncmp(line, "./", 2) ? line + 2 : line;
    if (asprintf(&image, "%s%s", *name == '/' ? "" : r->folder, name) < 0)
        image = NULL;
    target = image ? label_file(r, image) : NULL;
    const bool there = target && !stat(target, &info) && S_ISREG(info.st_mode);
    const struct st_pair *made =
        target ? st_pairs_add(r->out, (struct st_path_parts){"", image, ""},
                              (struct st_path_parts){"", there ? target : NULL, ""})
               : NULL;
    free(target);
    free(image);
    if (!made)
        return st_fail(err, STOKER_ENOMEM, "out of memory at line %llu", number);
    st_partners_has(&r->images, st_pairs_image(r->out, r->out->count - 1));
    return 0;
}

static int read_list(struct st_pairs *out, const char *list, size_t stem, const char *labels,
                     struct stoker_error *err)
{
    const char *slash = strrchr(list, '/');
    struct reading r = {.out = out, .images = {.folder = strdup(list)}, .labels = labels};
    char *name = strndup(list, stem);
    r.folder = strndup(list, slash ? (size_t)(slash + 1 - list) : 0);
    int rc = name && r.folder && r.images.folder
                 ? st_list_read("", name, add_line, &r, err)
                 : st_fail(err, STOKER_ENOMEM, "%s: out of memory", list);
    if (!rc && !out->count)
        rc = st_fail(err, STOKER_EINVAL, "%s: it lists no images", list);
    if (!rc)
        rc = st_partners_check(&r.images, "listed image is missing", "listed images are missing",
                               "Paths in it are relative to its folder", err);
    st_partners_close(&r.images);
    free(r.folder);
    free(name);
    return rc;
}

/* ---- both ---------------------------------------------------------------------------------------- */

static int read_folder(struct st_pairs *out, const char *images, const char *labels,
                       const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    static const char *const text[] = {".txt", NULL};
    const struct st_stem_options how = {.extensions = text, .optional = true};
    char *found = labels ? NULL : labels_of(images);
    const int rc = labels || found ? st_pairs_stems(out, images, labels ? labels : found, &how, opt, err)
                                   : st_fail(err, STOKER_ENOMEM, "%s: out of memory", images);
    free(found);
    return rc;
}

int st_pairs_yolo(struct st_pairs *out, const char *images, const char *labels,
                  const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const size_t stem = st_partners_stem(images);
    uint64_t with = 0;
    const int rc = !strcmp(images + stem, ".txt") ? read_list(out, images, stem, labels, err)
                                                  : read_folder(out, images, labels, opt, err);
    for (uint64_t i = 0; i < out->count; i++)
        with += *st_pairs_target(out, i) != '\0';
    if (!rc && !with)
        return st_fail(err, STOKER_ENOTFOUND,
                       "%s: none of %llu images has a label file: that of images/a/1.jpg is "
                       "labels/a/1.txt, or 1.txt beside an image below no folder named images",
                       images, (unsigned long long)out->count);
    return rc;
}
