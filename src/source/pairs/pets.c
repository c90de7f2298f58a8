/* pets.c - the images that the lists of Oxford-IIIT Pet name, with their breeds and trimaps
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/pairs/lists.h"
#include "source/pairs/pairs.h"
#include "source/pairs/partners.h"
#include "source/text/numbers.h"

#include <stdlib.h>

struct breed {
    int64_t label;
    uint64_t name; /* in `names` */
};

struct reading {
    struct st_pairs *out;
    struct st_partners images, targets;
    struct breed *breeds; /* of each image */
    uint64_t room;
    struct st_buffer names;
};

static int no_memory(struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "out of memory for the list");
}

static int take_number(const char *word, unsigned long long number, int64_t *out,
                       struct stoker_error *err)
{
    const struct st_bytes bytes = {(const uint8_t *)(word ? word : ""), word ? strlen(word) : 0};
    if (!st_text_int(bytes, out) || *out == INT64_MIN)
        return st_fail(err, STOKER_ECORRUPT, "line %llu: '%.60s' is not a whole number", number,
                       word ? word : "");
    --*out; /* the list counts from 1 */
    return 0;
}

/* As Python's title() writes the words of the breed, which is the image's name up to its last
 * underscore. */
static bool add_breed(struct reading *r, const char *image, int64_t label)
{
    const char *underscore = strrchr(image, '_');
    const size_t size = underscore ? (size_t)(underscore - image) : strlen(image);
    if (r->out->count >= r->room) {
        const uint64_t room = 2 * r->room + 64;
        struct breed *grown = st_grow(r->breeds, room, sizeof *grown);
        if (!grown)
            return false;
        r->breeds = grown;
        r->room = room;
    }
    if (!st_buffer_keep(&r->names, r->names.size + size + 1))
        return false;
    char *to = (char *)r->names.data + r->names.size;
    bool inside = false; /* a word */
    for (size_t i = 0; i < size; i++) {
        const char c = image[i];
        const bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z';
        to[i] = c == '_'           ? ' '
                : lower && !inside ? (char)(c - 'a' + 'A')
                : upper && inside  ? (char)(c - 'A' + 'a')
                                   : c;
        inside = lower || upper || (c & 0x80);
    }
    to[size] = '\0';
    r->breeds[r->out->count] = (struct breed){label, r->names.size};
    r->names.size += size + 1;
    return true;
}

static int add_line(void *context, char *line, unsigned long long number, struct stoker_error *err)
{
    static const char blanks[] = " \t\r\v\f";
    struct reading *r = context;
    int64_t label, group;
    char *rest;
    const char *image = strtok_r(line, blanks, &rest), *breed = strtok_r(NULL, blanks, &rest);
    const char *kind = strtok_r(NULL, blanks, &rest), *last = strtok_r(NULL, blanks, &rest);
    if (!last || strtok_r(NULL, blanks, &rest))
        return st_fail(err, STOKER_ECORRUPT,
                       "line %llu has not four words: image, breed, cat or dog, and number", number);
    int rc = take_number(breed, number, &label, err);
    if (!rc)
        rc = take_number(kind, number, &group, err);
    if (rc)
        return rc;
    if (!add_breed(r, image, label))
        return no_memory(err);
    struct st_pair *pair = st_pairs_add(r->out, (struct st_path_parts){r->images.folder, image, ".jpg"},
                                        (struct st_path_parts){r->targets.folder, image, ".png"});
    if (!pair)
        return no_memory(err);
    pair->label = label;
    pair->group = group;
    st_partners_has(&r->images, st_pairs_image(r->out, r->out->count - 1));
    st_partners_has(&r->targets, st_pairs_target(r->out, r->out->count - 1));
    return 0;
}

static int by_label(const void *a, const void *b)
{
    const struct breed *left = a, *right = b;
    if (left->label != right->label)
        return left->label < right->label ? -1 : 1;
    return (left->name > right->name) - (left->name < right->name);
}

/* A class for each label, ascending. */
static int add_classes(struct reading *r, struct stoker_error *err)
{
    const char *names = (const char *)r->names.data;
    if (r->out->count)
        qsort(r->breeds, r->out->count, sizeof *r->breeds, by_label);
    for (uint64_t i = 0; i < r->out->count; i++) {
        const struct breed *breed = &r->breeds[i], *before = breed - 1;
        if (i && before->label == breed->label) {
            if (strcmp(names + before->name, names + breed->name))
                return st_fail(err, STOKER_ECORRUPT, "%.300s: breed %lld is both '%.60s' and '%.60s'",
                               r->images.folder, (long long)breed->label + 1, names + before->name,
                               names + breed->name);
            continue;
        }
        if (!st_cells_add(&r->out->classes, names + breed->name, strlen(names + breed->name)))
            return no_memory(err);
    }
    return 0;
}

int st_pairs_pets(struct st_pairs *out, const char *root, const char *split,
                  const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    struct reading r = {.out = out};
    char *images = st_pairs_folder(root, "images"), *lists = st_pairs_folder(root, "annotations");
    char *targets = st_pairs_folder(root, "annotations/trimaps");
    int rc = images && lists && targets ? 0 : st_fail(err, STOKER_ENOMEM, "%s: out of memory", root);
    if (!rc)
        rc = st_partners_open(&r.images, images, NULL, false, opt, err);
    if (!rc)
        rc = st_partners_open(&r.targets, targets, NULL, false, opt, err);
    if (!rc)
        rc = st_list_read(lists, split, add_line, &r, err);
    if (!rc)
        rc = add_classes(&r, err);
    if (!rc)
        rc = st_partners_check(&r.images, "listed image is missing", "listed images are missing", "",
                               err);
    if (!rc)
        rc = st_partners_check(&r.targets, "trimap is missing", "trimaps are missing", "", err);
    st_partners_close(&r.images);
    st_partners_close(&r.targets);
    st_buffer_free(&r.names);
    free(r.breeds);
    free(images);
    free(lists);
    free(targets);
    return rc;
}
