/* zip.c - the images in a zip archive, in the order and with the classes of torchvision's ImageFolder
 *
 * The archive is read as if it were extracted: the deepest folder that contains all images is the root,
 * its folders are the classes, and images directly in it are ignored. If all images are in one folder,
 * that is the only class; if they are in none, there are no classes and all labels are 0. Names are only
 * names: nothing is ever opened by them. A member whose directory entry is damaged is a bad sample.
 *
 * Fields: image, label (the class), name (the path in the archive); by default image and label.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/fields/field_list.h"
#include "source/kinds.h"
#include "source/text/names.h"
#include "source/zip/directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No encoded image is larger; an archive that states more is a zip bomb. */
#define IMAGE_MAX (512ull << 20)

struct entry {
    const struct st_zip_member *member;
    uint32_t label;
};

enum role { ROLE_IMAGE, ROLE_LABEL, ROLE_NAME, ROLES };

struct zip {
    struct st_held file;
    struct st_zip zip;
    struct entry *entries;
    uint64_t count;
    uint64_t root; /* length of the root's path at the start of each name */
    char **classes;
    uint32_t class_count;
    uint32_t field_count;
    struct st_field fields[ROLES];
    enum role roles[ROLES];
};

static bool zip_matches(const char *path, const uint8_t *head, size_t size)
{
    static const char *const extension[] = {".zip", NULL};
    return (size >= 4 && (!memcmp(head, "PK\3\4", 4) || !memcmp(head, "PK\5\6", 4))) ||
           (size && st_name_has_extension(path, strlen(path), extension));
}

/* ---- selecting and sorting members ------------------------------------------------------------- */

static bool is_wanted(const char *name, const char *const *extensions)
{
    return st_name_has_extension(name, strlen(name), extensions) &&
           strncmp(name, "__MACOSX/", 9); /* resource forks that macOS adds, not images */
}

static int collect(struct zip *zip, const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const char *const *extensions = opt->extensions ? opt->extensions : st_image_extensions;
    zip->entries = st_calloc(zip->zip.count, sizeof *zip->entries);
    if (!zip->entries)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", zip->file.path);
    uint64_t locked = 0;
    for (uint64_t i = 0; i < zip->zip.count; i++) {
        const struct st_zip_member *member = &zip->zip.members[i];
        if (!is_wanted(st_zip_name(&zip->zip, member), extensions))
            continue;
        locked += member->encrypted && !member->damage;
        zip->entries[zip->count++] = (struct entry){member, 0};
    }
    if (!zip->count && !opt->allow_empty)
        return st_fail(err, STOKER_EINVAL, "%s: contains no images", zip->file.path);
    if (locked && locked == zip->count)
        return st_fail_in(err, st_zip_readable(&zip->zip, zip->entries[0].member, err), zip->file.path);
    return 0;
}

static const char *name_of(const struct zip *zip, const struct entry *entry)
{
    return st_zip_name(&zip->zip, entry->member);
}

static size_t folder_size(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) + 1 : 0;
}

/* Finds the folders that all names begin with. */
static void find_root(struct zip *zip)
{
    if (!zip->count)
        return;
    const char *first = name_of(zip, &zip->entries[0]);
    size_t common = folder_size(first);
    for (uint64_t i = 1; i < zip->count && common; i++) {
        const char *name = name_of(zip, &zip->entries[i]);
        size_t same = 0;
        while (same < common && name[same] == first[same])
            same++;
        while (same && first[same - 1] != '/')
            same--;
        common = same;
    }
    /* If all are in one folder, that folder is the only class. */
uint64_t in_root = 0;
    while (common && in_root < zip->count && folder_size(name_of(zip, &zip->entries[in_root])) == common)
        in_root++;
    if (common && in_root == zip->count)
        for (common--; common && first[common - 1] != '/';)
            common--;
    zip->root = common;
}

/* Compares by class, then by folder path, then by name: the order of a sorted os.walk, class by
 * class. */
static int compare_entries(const void *a, const void *b, void *context)
{
    const struct zip *zip = context;
    const char *left = name_of(zip, a) + zip->root, *right = name_of(zip, b) + zip->root;
    const size_t left_class = strcspn(left, "/"), right_class = strcspn(right, "/");
    const size_t left_dir = folder_size(left), right_dir = folder_size(right);
    int sign = 0;
    if (left_dir && right_dir)
        sign = st_name_compare(left, left_class, right, right_class);
    if (!sign)
        sign = st_name_compare(left, left_dir ? left_dir - 1 : 0, right, right_dir ? right_dir - 1 : 0);
    if (!sign)
        sign = st_name_compare(left + left_dir, strlen(left + left_dir), right + right_dir,
                               strlen(right + right_dir));
    return sign;
}

/* Entries are sorted: those in the root come first, then class after class. */
static int number_classes(struct zip *zip, struct stoker_error *err)
{
    uint64_t kept = 0, room = 0;
    const bool flat =
        !zip->count || !folder_size(name_of(zip, &zip->entries[zip->count - 1]) + zip->root);
    for (uint64_t i = 0; i < zip->count && !flat; i++) {
        const char *name = name_of(zip, &zip->entries[i]) + zip->root;
        const size_t size = strcspn(name, "/");
        if (!name[size])
            continue; /* in the root, not in a class */
        const char *last = zip->class_count ? zip->classes[zip->class_count - 1] : NULL;
        if (!last || strlen(last) != size || memcmp(last, name, size)) {
            if (zip->class_count == room) {
                room = room * 2 + 16;
                char **more = st_grow(zip->classes, room, sizeof *more);
                if (!more)
                    return st_fail(err, STOKER_ENOMEM, "%s: out of memory", zip->file.path);
                zip->classes = more;
            }
            zip->classes[zip->class_count] = strndup(name, size);
            if (!zip->classes[zip->class_count++])
                return st_fail(err, STOKER_ENOMEM, "%s: out of memory", zip->file.path);
        }
        zip->entries[kept++] = (struct entry){zip->entries[i].member, zip->class_count - 1};
    }
    if (!flat)
        zip->count = kept;
    return 0;
}

/* ---- fields ------------------------------------------------------------------------------------- */

static int choose_fields(struct zip *zip, const char *text, struct stoker_error *err)
{
    static const struct st_field known[ROLES] = {
        [ROLE_IMAGE] = {.name = "image", .kind = ST_FIELD_IMAGE, .dtype = STOKER_DTYPE_U8},
        [ROLE_LABEL] = {.name = "label", .kind = ST_FIELD_INT},
        [ROLE_NAME] = {.name = "name", .kind = ST_FIELD_TEXT},
    };
    struct st_field_list list;
    int rc = st_field_list_parse(&list, text ? text : "image,label", err);
    for (uint32_t k = 0; k < list.count && !rc; k++) {
        const struct st_field_request *request = &list.items[k];
        enum role role = ROLE_IMAGE;
        while (role < ROLES && strcmp(known[role].name, request->name))
            role++;
        if (role == ROLES || (request->typed && request->kind != known[role].kind)) {
            rc = st_fail(err, STOKER_EINVAL,
                         "fields: %s: unknown field or type; a zip archive has image, label (int) and "
                         "name (text)",
                         request->name);
            break;
        }
        zip->fields[zip->field_count] = known[role];
        zip->roles[zip->field_count++] = role;
    }
    st_field_list_free(&list);
    return rc;
}

static const struct st_field *zip_fields(const void *self, uint32_t *count)
{
    const struct zip *zip = self;
    *count = zip->field_count;
    return zip->fields;
}

/* ---- the source --------------------------------------------------------------------------------- */

static int zip_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                    struct stoker_error *err)
{
    struct zip *zip = self;
    int rc = choose_fields(zip, opt->fields, err);
    if (!rc)
        rc = st_held_open_any(&zip->file, path, NULL, opt, err);
    if (!rc)
        rc = st_zip_open(&zip->zip, &zip->file, err);
    if (!rc)
        rc = collect(zip, opt, err);
    if (rc)
        return rc;
    find_root(zip);
    qsort_r(zip->entries, zip->count, sizeof *zip->entries, compare_entries, zip);
    return number_classes(zip, err);
}

static uint64_t zip_count(const void *self) { return ((const struct zip *)self)->count; }

static int64_t zip_label(const void *self, uint64_t sample)
{
    return ((const struct zip *)self)->entries[sample].label;
}

static size_t zip_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    const struct zip *zip = self;
    const int length =
        snprintf(buffer, size, "%s: %s", zip->file.path, name_of(zip, &zip->entries[sample]));
    return length > 0 ? (size_t)length : 0;
}

static int zip_locate(const void *self, uint64_t sample, struct st_extent *out, struct stoker_error *err)
{
    const struct zip *zip = self;
    const struct st_zip_member *member = zip->entries[sample].member;
    const int rc = st_zip_readable(&zip->zip, member, err);
    if (rc)
        return st_fail_in(err, rc, zip->file.path);
    if (member->size > IMAGE_MAX)
        return st_fail(err, STOKER_ELIMIT,
                       "%s: %s: its size of %llu bytes exceeds the limit of 512 MiB for an image",
                       zip->file.path, st_zip_name(&zip->zip, member), (unsigned long long)member->size);
    st_held_extent(&zip->file, member->at, member->room, out);
    return 0;
}

static int unpack(const struct zip *zip, const struct st_zip_member *member, struct st_bytes raw,
                  struct st_buffer *scratch, struct st_bytes *out, struct stoker_error *err)
{
    int rc = st_zip_find(&zip->zip, member, raw, out, err);
    if (rc)
        return rc;
    if (member->method == ST_ZIP_STORED)
        return st_zip_verify(&zip->zip, member, *out, err);
    if (!st_buffer_reserve(scratch, member->size))
        return st_fail(err, STOKER_ENOMEM, "out of memory for %llu bytes",
                       (unsigned long long)member->size);
    rc = st_zip_unpack(&zip->zip, member, *out, scratch->data, err);
    *out = (struct st_bytes){scratch->data, member->size};
    return rc;
}

static int zip_split(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                     struct st_piece *pieces, struct stoker_error *err)
{
    const struct zip *zip = self;
    const struct entry *entry = &zip->entries[sample];
    const char *name = name_of(zip, entry);
    for (uint32_t k = 0; k < zip->field_count; k++) {
        pieces[k] = (struct st_piece){0};
        int rc = 0;
        if (zip->roles[k] == ROLE_IMAGE)
            rc = unpack(zip, entry->member, raw, scratch, &pieces[k].bytes, err);
        else if (zip->roles[k] == ROLE_LABEL)
            pieces[k].whole = entry->label;
        else
            pieces[k].bytes = (struct st_bytes){(const uint8_t *)name, strlen(name)};
        if (rc)
            return st_fail_in(err, rc, zip->file.path);
    }
    return 0;
}

static uint32_t zip_class_count(const void *self) { return ((const struct zip *)self)->class_count; }

static const char *zip_class_name(const void *self, uint32_t index)
{
    return ((const struct zip *)self)->classes[index];
}

static void zip_close(void *self)
{
    struct zip *zip = self;
    for (uint32_t i = 0; i < zip->class_count; i++)
        free(zip->classes[i]);
    free(zip->classes);
    free(zip->entries);
    st_zip_close(&zip->zip);
    st_held_close(&zip->file);
}

const struct st_source st_source_zip = {
    .scheme = "zip",
    .self_size = sizeof(struct zip),
    .matches = zip_matches,
    .open = zip_open,
    .count = zip_count,
    .label = zip_label,
    .name = zip_name,
    .locate = zip_locate,
    .fields = zip_fields,
    .split = zip_split,
    .class_count = zip_class_count,
    .class_name = zip_class_name,
    .close = zip_close,
};
