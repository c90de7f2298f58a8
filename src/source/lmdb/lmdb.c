/* lmdb.c - an LMDB database, whose entries are the samples, in the order of their keys
 *
 * Where the entries lie is found out once; then a sample is a part of a file, read like any other, by
 * any number of threads and after any fork, with no call of liblmdb and no lock.
 *
 * Fields: key (text), value (bytes; or of the type given: value=text, value=f32[10], value=array where
 * each value is an npy file), image (an encoded image, or image=u8[32x32x3]; the image of a Datum where
 * values are Caffe's Datums), label (a Datum's). By default image and label of Datums, else image and
 * key. A raw Datum has its channels in the order in which they are stored (Caffe's own tools store blue
 * first).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/lmdb/datum.h"
#include "source/field_list.h"
#include "source/kinds.h"
#include "source/lmdb/hold.h"
#include "source/lmdb/tree.h"
#include "source/arrays/npy_header.h"
#include "source/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_MAX = 65535, HOLD_ATTEMPTS = 10, FIRST_MAX = 64 << 20, KINDS_OF_FIELD = 4 };
enum role { ROLE_KEY, ROLE_VALUE, ROLE_IMAGE, ROLE_LABEL };
static const char *const role_names[] = {"key", "value", "image", "label"};

struct lmdb {
    struct st_held file;
    struct st_lmdb_hold *hold;
    struct st_lmdb_entry *entries;
    uint64_t count;
    bool datums;
    struct st_field_list wishes;
    struct st_field fields[KINDS_OF_FIELD];
    enum role roles[KINDS_OF_FIELD];
};

/* A folder with data.mdb in it, or a file that begins as that does. */
static bool lmdb_suits(const char *path, const uint8_t *head, size_t size)
{
    static const uint8_t magic[] = {0xde, 0xc0, 0xef, 0xbe};
    char data[PATH_MAX];
    if (size)
        return size >= 20 && !memcmp(head + 16, magic, sizeof magic);
    return st_path_join(data, path, "/", "data.mdb") && !access(data, R_OK);
}

/* ---- opening ------------------------------------------------------------------------------------ */

/* The folder's data.mdb, or the file itself. */
static int open_file(struct lmdb *lmdb, const char *path, bool *in_folder,
                     const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    char data[PATH_MAX];
    struct stat info;
    *in_folder = !stat(path, &info) && S_ISDIR(info.st_mode);
    const int size = snprintf(data, sizeof data, "%s%s", path, *in_folder ? "/data.mdb" : "");
    if (size < 0 || (size_t)size >= sizeof data)
        return st_fail(err, STOKER_EINVAL, "%.200s...: the path is too long", path);
    const int rc = st_held_open_copy(&lmdb->file, data, opt, err);
    st_held_unname(&lmdb->file);
    return rc;
}

static int walk_held(struct lmdb *lmdb, const char *path, bool in_folder, struct stoker_error *err)
{
    struct st_lmdb_head head;
    int rc = st_lmdb_head(&head, &lmdb->file, UINT64_MAX, err);
    for (int attempt = 0; !rc && attempt < HOLD_ATTEMPTS; attempt++) {
        uint64_t transaction;
        lmdb->hold = st_lmdb_hold(path, in_folder, &transaction);
        if (lmdb->hold) { /* the file may have grown since it was opened */
            struct stat info;
            if (!fstat(lmdb->file.fd, &info))
                lmdb->file.size = (uint64_t)info.st_size;
        }
        rc = st_lmdb_head(&head, &lmdb->file, transaction, err);
        if (rc != STOKER_END)
            break;
        st_lmdb_release(
            lmdb->hold); /* a writer was faster: that state is no longer in the file's beginning */
        lmdb->hold = NULL;
        rc = attempt + 1 < HOLD_ATTEMPTS
                 ? 0
                 : st_fail(err, STOKER_EIO, "%s: is written faster than it can be opened", path);
    }
    if (!rc)
        rc = st_lmdb_walk(&lmdb->entries, &head, &lmdb->file, err);
    lmdb->count = rc ? 0 : head.entries;
    return rc;
}

/* What loaders of images keep beside them: their number, a list of their keys. */
static bool is_special(const char *key, size_t size)
{
    static const char *const known[] = {"num-samples", "length"};
    if (size > 4 && !memcmp(key, "__", 2) && !memcmp(key + size - 2, "__", 2))
        return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == size && !memcmp(key, known[i], size))
            return true;
    return false;
}

static int drop_special(struct lmdb *lmdb, struct stoker_error *err)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < lmdb->count; i++) {
        const struct st_lmdb_entry *entry = &lmdb->entries[i];
        char key[16];
        if (entry->key_size <= sizeof key && memchr("_nl", entry->first, 3)) {
            const int rc = st_held_read(&lmdb->file, entry->key, key, entry->key_size, err);
            if (rc)
                return rc;
            if (is_special(key, entry->key_size))
                continue;
        }
        lmdb->entries[kept++] = *entry;
    }
    lmdb->count = kept;
    return 0;
}

/* The first value tells whether values are Datums. */
static int look_at_first(struct lmdb *lmdb, struct stoker_error *err)
{
    struct st_datum datum;
    if (!lmdb->count || lmdb->entries[0].size > FIRST_MAX)
        return 0;
    const struct st_lmdb_entry *first = &lmdb->entries[0];
    uint8_t *value = malloc(first->size ? first->size : 1);
    if (!value)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", lmdb->file.path);
    const int rc = st_held_read(&lmdb->file, first->value, value, first->size, err);
    lmdb->datums = !rc && st_datum_parse(&datum, (struct st_bytes){value, first->size});
    free(value);
    return rc;
}

static int choose_field(struct lmdb *lmdb, uint32_t k, struct stoker_error *err)
{
    const struct st_field_wish *wish = &lmdb->wishes.wishes[k];
    struct st_field *field = &lmdb->fields[k];
    uint32_t role = 0;
    while (role < KINDS_OF_FIELD && strcmp(wish->name, role_names[role]))
        role++;
    static const enum st_field_kind kinds[] = {ST_FIELD_TEXT, ST_FIELD_BYTES, ST_FIELD_IMAGE,
                                               ST_FIELD_INT};
    if (role == KINDS_OF_FIELD || (wish->typed && role != ROLE_VALUE && wish->kind != kinds[role] &&
                                   !(role == ROLE_KEY && wish->kind == ST_FIELD_BYTES)))
        return st_fail(err, STOKER_EINVAL,
                       "fields: %s: an LMDB database has key, value, image and label", wish->name);
    if (role == ROLE_LABEL && !lmdb->datums)
        return st_fail(err, STOKER_EINVAL, "%s: its values are no Datums, and have no label",
                       lmdb->file.path);
    *field = (struct st_field){.name = role_names[role], .kind = wish->typed ? wish->kind : kinds[role]};
    if (field->kind == ST_FIELD_FLOAT || (field->kind == ST_FIELD_INT && role != ROLE_LABEL))
        return st_fail(err, STOKER_EINVAL,
                       "fields: %s: values are not read as single numbers; give f32[1] or i64[1]",
                       wish->name);
    field->dtype = wish->ndim ? wish->dtype : STOKER_U8;
    field->ndim = wish->ndim;
    memcpy(field->shape, wish->shape, sizeof field->shape);
    if (field->kind == ST_FIELD_ARRAY && !wish->ndim)
        field->ndim = -1;
    if (role == ROLE_IMAGE && lmdb->datums && !wish->ndim)
        field->ndim = -1;
    lmdb->roles[k] = (enum role)role;
    return 0;
}

static int lmdb_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                     struct stoker_error *err)
{
    struct lmdb *lmdb = self;
    bool in_folder;
    int rc = open_file(lmdb, path, &in_folder, opt, err);
    if (!rc)
        rc = walk_held(lmdb, path, in_folder, err);
    if (!rc)
        rc = drop_special(lmdb, err);
    if (!rc)
        rc = look_at_first(lmdb, err);
    if (!rc)
        rc = st_field_list_parse(&lmdb->wishes,
                                 opt->fields    ? opt->fields
                                 : lmdb->datums ? "image,label"
                                                : "image,key",
                                 err);
    if (!rc && lmdb->wishes.count > KINDS_OF_FIELD)
        rc = st_fail(err, STOKER_EINVAL, "fields: an LMDB database has key, value, image and label");
    for (uint32_t k = 0; k < lmdb->wishes.count && !rc; k++)
        rc = choose_field(lmdb, k, err);
    return rc;
}

/* ---- samples ------------------------------------------------------------------------------------ */

static uint64_t lmdb_count(const void *self) { return ((const struct lmdb *)self)->count; }

static size_t lmdb_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    const struct lmdb *lmdb = self;
    const struct st_lmdb_entry *entry = &lmdb->entries[sample];
    char key[512];
    const uint64_t shown = entry->key_size < sizeof key ? entry->key_size : sizeof key;
    if (st_held_read(&lmdb->file, entry->key, key, shown, NULL))
        return st_name_by_number(self, sample, buffer, size);
    const int length = snprintf(buffer, size, "%s: key %.*s", lmdb->file.path, (int)shown, key);
    return length > 0 ? (size_t)length : 0;
}

static int lmdb_locate(const void *self, uint64_t sample, struct st_extent *out,
                       struct stoker_error *err)
{
    const struct lmdb *lmdb = self;
    const struct st_lmdb_entry *entry = &lmdb->entries[sample];
    (void)err;
    st_held_extent(&lmdb->file, entry->value, entry->size, out);
    return 0;
}

static const struct st_field *lmdb_fields(const void *self, uint32_t *count)
{
    const struct lmdb *lmdb = self;
    *count = lmdb->wishes.count;
    return lmdb->fields;
}

/* Planes to pixels. */
static void interleave(uint8_t *to, const struct st_datum *datum)
{
    const size_t plane = (size_t)datum->height * (size_t)datum->width,
                 channels = (size_t)datum->channels;
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < plane; i++)
            to[i * channels + c] = datum->data.data[c * plane + i];
}

/* The image of a Datum; `to` has room for the whole value. */
static int datum_image(struct st_bytes value, uint8_t *to, struct st_piece *piece,
                       struct stoker_error *err)
{
    struct st_datum datum;
    if (!st_datum_parse(&datum, value))
        return st_fail(err, STOKER_ECORRUPT, "no Datum, or a damaged one");
    piece->whole = datum.label;
    if (datum.encoded) {
        piece->bytes = datum.data;
        return 0;
    }
    if (datum.floats)
        return st_fail(err, STOKER_EUNSUPPORTED, "a Datum of floats is no image");
    if (datum.channels > 4)
        return st_fail(err, STOKER_EUNSUPPORTED, "a Datum of %d channels is no image", datum.channels);
    interleave(to, &datum);
    *piece = (struct st_piece){.bytes = {to, datum.data.size},
                               .whole = datum.label,
                               .dtype = STOKER_U8,
                               .ndim = 3,
                               .shape = {datum.height, datum.width, datum.channels}};
    return 0;
}

static int value_array(const struct st_field *field, struct st_bytes value, uint8_t *to,
                       struct st_piece *piece, struct stoker_error *err)
{
    const struct st_field_wish wish = {.name = field->name, .typed = true, .kind = ST_FIELD_ARRAY};
    struct st_npy npy;
    struct st_rows rows;
    int rc = st_npy_parse(&npy, value, "the value", err);
    if (!rc)
        rc = st_npy_check_size(&npy, value.size, "the value", err);
    if (rc || npy.shape.ndim > ST_DIMS_MAX)
        return rc ? rc : st_fail(err, STOKER_EUNSUPPORTED, "more than %d dimensions", ST_DIMS_MAX);
    /* The whole array is the only row of one with another axis. */
    memmove(npy.shape.sizes + 1, npy.shape.sizes, (size_t)npy.shape.ndim * sizeof *npy.shape.sizes);
    npy.shape.sizes[0] = 1;
    npy.shape.ndim++;
    rc = st_rows_init(&rows, &npy.element, &npy.shape, &wish, "the value", err);
    if (rc)
        return rc;
    struct st_buffer own = {.data = to, .capacity = value.size};
    const uint8_t *at = value.data + npy.offset;
    return st_rows_split(&rows, 1, &at, &own, piece, err);
}

static int make_piece(const struct lmdb *lmdb, uint32_t k, struct st_bytes value, uint8_t *to,
                      struct st_piece *piece, struct stoker_error *err)
{
    const struct st_field *field = &lmdb->fields[k];
    *piece = (struct st_piece){.bytes = value, .dtype = field->dtype, .ndim = field->ndim};
    if (field->ndim > 0) {
        uint64_t size = st_dtype_size(field->dtype);
        for (int32_t i = 0; i < field->ndim; i++)
            if (!st_mul(size, (uint64_t)field->shape[i], &size))
                size = UINT64_MAX;
        memcpy(piece->shape, field->shape, sizeof piece->shape);
        if (size != value.size)
            return st_fail(err, STOKER_ECORRUPT, "a value of %zu bytes, where %s has %llu", value.size,
                           field->name, (unsigned long long)size);
        return 0;
    }
    piece->ndim = 0;
    if (field->kind == ST_FIELD_ARRAY)
        return value_array(field, value, to, piece, err);
    const bool of_datum = lmdb->roles[k] == ROLE_LABEL || (lmdb->roles[k] == ROLE_IMAGE && lmdb->datums);
    return of_datum ? datum_image(value, to, piece, err) : 0;
}

/* The scratch buffer holds the key, and behind it what a value is converted to. */
static int lmdb_split(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                      struct st_piece *pieces, struct stoker_error *err)
{
    const struct lmdb *lmdb = self;
    const struct st_lmdb_entry *entry = &lmdb->entries[sample];
    const uint64_t behind_key = st_align(entry->key_size, 64);
    int rc = 0;
    if (!st_buffer_reserve(scratch, behind_key + raw.size + 1))
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", lmdb->file.path);
    for (uint32_t k = 0; k < lmdb->wishes.count && !rc; k++) {
        if (lmdb->roles[k] == ROLE_KEY) {
            rc = st_held_read(&lmdb->file, entry->key, scratch->data, entry->key_size, err);
            pieces[k] = (struct st_piece){.bytes = {scratch->data, entry->key_size}};
        } else {
            rc = make_piece(lmdb, k, raw, scratch->data + behind_key, &pieces[k], err);
            if (rc) {
                char name[700];
                lmdb_name(self, sample, name, sizeof name);
                st_fail_in(err, rc, name);
            }
        }
    }
    return rc;
}

static void lmdb_close(void *self)
{
    struct lmdb *lmdb = self;
    st_lmdb_release(lmdb->hold);
    free(lmdb->entries);
    st_field_list_free(&lmdb->wishes);
    st_held_close(&lmdb->file);
}

const struct st_source st_source_lmdb = {
    .scheme = "lmdb",
    .self_size = sizeof(struct lmdb),
    .suits = lmdb_suits,
    .open = lmdb_open,
    .count = lmdb_count,
    .label = st_label_zero,
    .name = lmdb_name,
    .locate = lmdb_locate,
    .fields = lmdb_fields,
    .split = lmdb_split,
    .close = lmdb_close,
};
