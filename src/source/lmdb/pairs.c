/* pairs.c - databases in which an image and its label are two entries: image-000000001 and
 * label-000000001
 *
 * Keys are sorted, so the images are contiguous and so are the labels: binary search finds them. The
 * label of an image is looked up by key when it is read, since any label may be missing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/lmdb/pairs.h"

#include <string.h>

enum { PREFIX = 6, KEY_MAX = 64 };

struct key {
    char bytes[KEY_MAX]; /* truncated if it is longer */
    size_t size;
};

static int read_key(struct key *out, const struct st_lmdb_entry *entry, const struct st_held *file,
                    struct stoker_error *err)
{
    out->size = entry->key_size < KEY_MAX ? entry->key_size : KEY_MAX;
    return st_held_read(file, entry->key, out->bytes, out->size, err);
}

static int compare(const struct key *a, const char *b, size_t size)
{
    const int order = memcmp(a->bytes, b, a->size < size ? a->size : size);
    return order ? order : (a->size > size) - (a->size < size);
}

/* The first entry in [from, end) whose key is not less than this one. */
static int find(const struct st_lmdb_contents *contents, const struct st_held *file, uint64_t from,
                uint64_t end, const char *key, size_t size, uint64_t *out, struct stoker_error *err)
{
    while (from < end) {
        const uint64_t middle = from + (end - from) / 2;
        struct key here;
        const int rc = read_key(&here, &contents->entries[middle], file, err);
        if (rc)
            return rc;
        if (compare(&here, key, size) < 0)
            from = middle + 1;
        else
            end = middle;
    }
    *out = from;
    return 0;
}

int st_lmdb_pairs_find(struct st_lmdb_pairs *out, const struct st_lmdb_contents *contents,
                       const struct st_held *file, struct stoker_error *err)
{
    static const char *const bounds[] = {"image-", "image.", "label-",
                                         "label."}; /* '.' is next to '-' */
    uint64_t at[4];
    struct key first = {.size = 0};
    int rc = 0;
    *out = (struct st_lmdb_pairs){0};
    if (contents->count < 2 || contents->entries[0].first != 'i')
        return 0;
    for (int i = 0; i < 4 && !rc; i++)
        rc = find(contents, file, 0, contents->count, bounds[i], PREFIX, &at[i], err);
    if (rc || at[0] != 0 || at[1] == 0 || at[2] != at[1] || at[3] != contents->count || at[3] == at[2])
        return rc;
    rc = read_key(&first, &contents->entries[0], file, err);
    if (!rc && first.size > PREFIX && first.bytes[PREFIX] >= '0' && first.bytes[PREFIX] <= '9')
        *out = (struct st_lmdb_pairs){at[0], at[1] - at[0], at[2], at[3] - at[2]};
    return rc;
}

int st_lmdb_pairs_label(const struct st_lmdb_pairs *pairs, const struct st_lmdb_contents *contents,
                        const struct st_held *file, uint64_t sample, const struct st_lmdb_entry **out,
                        struct stoker_error *err)
{
    const uint64_t end = pairs->labels + pairs->label_count;
    uint64_t at = pairs->labels + sample;
    struct key image, label;
    int rc = read_key(&image, &contents->entries[pairs->images + sample], file, err);
    if (rc)
        return rc;
    memcpy(image.bytes, "label-", PREFIX);
    for (int attempt = 0; attempt < 2; attempt++) { /* at the same position, if none is missing */
        if (attempt &&
            (rc = find(contents, file, pairs->labels, end, image.bytes, image.size, &at, err)) != 0)
            return rc;
        if (at >= end)
            continue;
        if ((rc = read_key(&label, &contents->entries[at], file, err)) != 0)
            return rc;
        if (!compare(&label, image.bytes, image.size)) {
            *out = &contents->entries[at];
            return 0;
        }
    }
    return st_fail(err, STOKER_ECORRUPT, "the database has no key %.*s", (int)image.size, image.bytes);
}
