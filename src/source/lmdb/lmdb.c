/* lmdb.c - an LMDB database: its entries, sorted by key, are the samples
 *
 * The offsets of the entries are determined once; after that a sample is a part of a file, read like any
 * other, by any number of threads and after any fork, without calling liblmdb and without a lock.
 *
 * Fields: key (text), value (bytes, or another type: value=text, value=f32[10], or value=array if each
 * value is an npy file), image (an encoded image, or image=u8[32x32x3]), label. If the values are Caffe
 * Datums, or an image and a number in MessagePack, image and label are taken from them; if the keys are
 * image-N and label-N, the label is the text at label-N (label=int: a number). The default is image and
 * label if there are labels, otherwise image and key.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/fields/field_list.h"
#include "source/kinds.h"
#include "source/text/names.h"
#include "source/lmdb/hold.h"
#include "source/lmdb/pairs.h"
#include "source/lmdb/tree.h"
#include "source/lmdb/values.h"
#include "source/index/scan.h"
#include "source/text/numbers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOLD_ATTEMPTS = 10, FIRST_MAX = 64 << 20, KINDS_OF_FIELD = 4 };
enum role { ROLE_KEY, ROLE_VALUE, ROLE_IMAGE, ROLE_LABEL };
static const char *const role_names[] = {"key", "value", "image", "label"};

struct lmdb {
    struct st_held file;
    struct st_lmdb_hold *hold;
    struct st_lmdb_contents contents;
    struct st_lmdb_pairs pairs;
    enum st_lmdb_values values;
    struct st_field_list requested;
    struct st_field fields[KINDS_OF_FIELD];
    enum role roles[KINDS_OF_FIELD];
    char note[500];
};

/* A folder that contains data.mdb, or a file that begins like one or has its extension. */
static bool lmdb_matches(const char *path, const uint8_t *head, size_t size)
{
    static const char *const extensions[] = {".lmdb", ".mdb", NULL};
    static const uint8_t magic[] = {0xde, 0xc0, 0xef, 0xbe};
    char data[PATH_MAX];
    if (size)
        return (size >= 20 && !memcmp(head + 16, magic, sizeof magic)) ||
               st_name_has_extension(path, strlen(path), extensions);
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
        return st_fail(err, STOKER_EINVAL, "%.200s...: path too long", path);
    const int rc = st_held_open_copy(&lmdb->file, data, opt, err);
    st_held_unlink(&lmdb->file);
    return rc;
}

/* Walks the main database, or the one with this name. */
static int walk_chosen(struct lmdb *lmdb, struct st_lmdb_head *head, const char *name,
                       struct stoker_error *err)
{
    struct st_lmdb_contents *contents = &lmdb->contents;
    struct st_name_list names = {0};
    int rc = st_lmdb_walk(contents, head, &lmdb->file, err);
    if (!rc && name) {
        rc = st_lmdb_select(head, contents, &lmdb->file, name, err);
        st_lmdb_contents_free(contents);
        return rc ? rc : st_lmdb_walk(contents, head, &lmdb->file, err);
    }
    if (!rc && !contents->count && contents->named_count) {
        st_lmdb_names(contents, &lmdb->file, &names);
        rc = st_fail(err, STOKER_EINVAL, "%s: contains only named databases; choose one with db=: %s",
                     lmdb->file.path, names.text);
    }
    return rc;
}

static int walk_held(struct lmdb *lmdb, const char *path, bool in_folder, const char *name,
                     struct stoker_error *err)
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
        st_lmdb_release(lmdb->hold); /* a writer was faster: the file's heads have newer snapshots */
        lmdb->hold = NULL;
        rc =
            attempt + 1 < HOLD_ATTEMPTS
                ? 0
                : st_fail(
                      err, STOKER_ETRANSIENT,
                      "%s: is being written faster than it can be opened; retry when the writer is done",
                      path);
    }
    return rc ? rc : walk_chosen(lmdb, &head, name, err);
}

/* ---- keys that are not samples ----------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void add_note(struct lmdb *lmdb, const char *format, ...)
{
    const size_t used = strlen(lmdb->note);
    va_list args;
    va_start(args, format);
    vsnprintf(lmdb->note + used, sizeof lmdb->note - used, format, args);
    va_end(args);
}

/* Metadata that image loaders store with the images: their number, a list of their keys. Recognized by
 * these names only, and only if the value is not an image and, except for the list, short. */
static int is_metadata(const struct lmdb *lmdb, const struct st_lmdb_entry *entry, const char **name,
                       struct stoker_error *err)
{
    enum { HEAD = 64 };
    static const char *const known[] = {"__keys__", "__len__", "num-samples", "length"};
    uint8_t key[16], head[HEAD];
    *name = NULL;
    if (entry->key_size > sizeof key || !entry->first || !memchr("_nl", entry->first, 3))
        return 0;
    int rc = st_held_read(&lmdb->file, entry->key, key, entry->key_size, err);
    for (size_t i = 0; i < sizeof known / sizeof *known && !rc; i++) {
        if (strlen(known[i]) != entry->key_size || memcmp(key, known[i], entry->key_size))
            continue;
        const uint64_t size = entry->size < HEAD ? entry->size : HEAD;
        rc = st_held_read(&lmdb->file, entry->value, head, size, err);
        if (!rc && (i == 0 || entry->size <= HEAD) &&
            !st_looks_like_image((struct st_bytes){head, size}))
            *name = known[i];
    }
    return rc;
}

static int drop_metadata(struct lmdb *lmdb, struct stoker_error *err)
{
    struct st_lmdb_contents *contents = &lmdb->contents;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < contents->count; i++) {
        const char *name;
        const int rc = is_metadata(lmdb, &contents->entries[i], &name, err);
        if (rc)
            return rc;
        if (name)
            add_note(lmdb, "%s%s", lmdb->note[0] ? ", " : "keys that are not samples: ", name);
        else
            contents->entries[kept++] = contents->entries[i];
    }
    contents->count = kept;
    return 0;
}

/* ---- kinds of values -------------------------------------------------------------------------- */

/* The first value decides the kind of all. */
static int inspect_first(struct lmdb *lmdb, struct stoker_error *err)
{
    const struct st_lmdb_contents *contents = &lmdb->contents;
    int rc = st_lmdb_pairs_find(&lmdb->pairs, contents, &lmdb->file, err);
    if (rc || lmdb->pairs.image_count || !contents->count || contents->entries[0].size > FIRST_MAX)
        return rc;
    const struct st_lmdb_entry *first = &contents->entries[0];
    uint8_t *value = malloc(first->size ? first->size : 1);
    if (!value)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", lmdb->file.path);
    rc = st_held_read(&lmdb->file, first->value, value, first->size, err);
    if (!rc)
        lmdb->values = st_lmdb_values_of((struct st_bytes){value, first->size});
    free(value);
    return rc;
}

/* Whether a value contains both image and label. */
static bool has_parts(const struct lmdb *lmdb)
{
    return lmdb->values == ST_VALUES_DATUM || lmdb->values == ST_VALUES_PAIR;
}

static bool has_labels(const struct lmdb *lmdb) { return has_parts(lmdb) || lmdb->pairs.image_count; }

static int refuse_values(const struct lmdb *lmdb, struct stoker_error *err)
{
    const bool pickle = lmdb->values == ST_VALUES_PICKLE;
    return st_fail(err, STOKER_EUNSUPPORTED,
                   "%s: its values are %s; repack the images (stoker pack --format lmdb), or use "
                   "fields=value,key to get the raw bytes",
                   lmdb->file.path,
                   pickle ? "pickles, which are never loaded because they can run code"
                          : "MessagePack, but not an image and a number");
}

static int unknown_field(const struct lmdb *lmdb, const char *name, struct stoker_error *err)
{
    return st_fail(err, STOKER_EINVAL,
                   "%s: fields: unknown field %.100s; an LMDB database has key, value, image and label",
                   lmdb->file.path, name);
}

static bool can_be(const struct lmdb *lmdb, enum role role, enum st_field_kind kind)
{
    switch (role) {
    case ROLE_KEY:
        return kind == ST_FIELD_TEXT || kind == ST_FIELD_BYTES;
    case ROLE_VALUE:
        return kind != ST_FIELD_INT && kind != ST_FIELD_FLOAT;
    case ROLE_IMAGE:
        return kind == ST_FIELD_IMAGE;
    default:
        return kind == ST_FIELD_INT ||
               (lmdb->pairs.image_count && (kind == ST_FIELD_TEXT || kind == ST_FIELD_BYTES));
    }
}

static int choose_field(struct lmdb *lmdb, uint32_t k, struct stoker_error *err)
{
    const struct st_field_request *request = &lmdb->requested.items[k];
    struct st_field *field = &lmdb->fields[k];
    const enum st_field_kind kinds[] = {ST_FIELD_TEXT, ST_FIELD_BYTES, ST_FIELD_IMAGE,
                                        lmdb->pairs.image_count ? ST_FIELD_TEXT : ST_FIELD_INT};
    uint32_t role = 0;
    while (role < KINDS_OF_FIELD && strcmp(request->name, role_names[role]))
        role++;
    if (role == KINDS_OF_FIELD)
        return unknown_field(lmdb, request->name, err);
    if (role == ROLE_LABEL && !has_labels(lmdb))
        return st_fail(err, STOKER_EINVAL,
                       "%s: fields: label: there are no labels, since the values are not Datums",
                       lmdb->file.path);
    if (role == ROLE_IMAGE && !request->ndim &&
        (lmdb->values == ST_VALUES_PICKLE || lmdb->values == ST_VALUES_MSGPACK))
        return refuse_values(lmdb, err);
    *field = (struct st_field){.name = role_names[role],
                               .kind = request->typed ? request->kind : kinds[role]};
    if (!can_be(lmdb, (enum role)role, field->kind))
        return st_fail(
            err, STOKER_EINVAL,
            "fields: %s: cannot be read as %s; to read a value as one number use f32[1] or i64[1]",
            request->name, st_field_kind_name(field->kind));
    field->dtype = request->ndim ? request->dtype : STOKER_DTYPE_U8;
    field->ndim = request->ndim;
    memcpy(field->shape, request->shape, sizeof field->shape);
    if (!request->ndim &&
        (field->kind == ST_FIELD_ARRAY || (role == ROLE_IMAGE && lmdb->values == ST_VALUES_DATUM)))
        field->ndim = -1;
    lmdb->roles[k] = (enum role)role;
    return 0;
}

static int choose_fields(struct lmdb *lmdb, const char *text, struct stoker_error *err)
{
    int rc = st_field_list_parse(&lmdb->requested,
                                 text               ? text
                                 : has_labels(lmdb) ? "image,label"
                                                    : "image,key",
                                 err);
    if (!rc && lmdb->requested.count > KINDS_OF_FIELD)
        rc = unknown_field(lmdb, lmdb->requested.items[KINDS_OF_FIELD].name, err);
    for (uint32_t k = 0; k < lmdb->requested.count && !rc; k++)
        rc = choose_field(lmdb, k, err);
    return rc;
}

static int lmdb_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                     struct stoker_error *err)
{
    struct lmdb *lmdb = self;
    bool in_folder;
    int rc = open_file(lmdb, path, &in_folder, opt, err);
    if (!rc)
        rc = walk_held(lmdb, path, in_folder, opt->db, err);
    if (!rc)
        rc = drop_metadata(lmdb, err);
    if (!rc)
        rc = inspect_first(lmdb, err);
    return rc ? rc : choose_fields(lmdb, opt->fields, err);
}

/* ---- samples ------------------------------------------------------------------------------------ */

static uint64_t lmdb_count(const void *self)
{
    const struct lmdb *lmdb = self;
    return lmdb->pairs.image_count ? lmdb->pairs.image_count : lmdb->contents.count;
}

static const struct st_lmdb_entry *entry_of(const struct lmdb *lmdb, uint64_t sample)
{
    return &lmdb->contents.entries[lmdb->pairs.images + sample];
}

static size_t lmdb_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    const struct lmdb *lmdb = self;
    const struct st_lmdb_entry *entry = entry_of(lmdb, sample);
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
    const struct st_lmdb_entry *entry = entry_of(lmdb, sample);
    (void)err;
    st_held_extent(&lmdb->file, entry->value, entry->size, out);
    return 0;
}

static const struct st_field *lmdb_fields(const void *self, uint32_t *count)
{
    const struct lmdb *lmdb = self;
    *count = lmdb->requested.count;
    return lmdb->fields;
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
            return st_fail(err, STOKER_ECORRUPT,
                           "the value has %zu bytes, but the requested dtype and shape of %s take %llu",
                           value.size, field->name, (unsigned long long)size);
        return 0;
    }
    piece->ndim = 0;
    if (field->kind == ST_FIELD_ARRAY)
        return st_lmdb_array(value, to, piece, err);
    const bool part = lmdb->roles[k] == ROLE_LABEL || (lmdb->roles[k] == ROLE_IMAGE && has_parts(lmdb));
    return part ? st_lmdb_image(lmdb->values, value, to, piece, err) : 0;
}

/* The text of a label that is a separate entry. */
static int make_label(const struct lmdb *lmdb, const struct st_field *field,
                      const struct st_lmdb_entry *label, uint8_t *to, struct st_piece *piece,
                      struct stoker_error *err)
{
    const int rc = st_held_read(&lmdb->file, label->value, to, label->size, err);
    *piece = (struct st_piece){.bytes = {to, label->size}};
    if (!rc && field->kind == ST_FIELD_INT && !st_text_int(piece->bytes, &piece->whole))
        return st_fail(err, STOKER_ECORRUPT, "the label \"%.*s\" is not an integer",
                       label->size < 40 ? (int)label->size : 40, (const char *)to);
    return rc;
}

/* Finds the label's entry, if the label is requested. */
static int find_label(const struct lmdb *lmdb, uint64_t sample, const struct st_lmdb_entry **out,
                      struct stoker_error *err)
{
    *out = NULL;
    for (uint32_t k = 0; k < lmdb->requested.count; k++)
        if (lmdb->roles[k] == ROLE_LABEL && lmdb->pairs.image_count)
            return st_lmdb_pairs_label(&lmdb->pairs, &lmdb->contents, &lmdb->file, sample, out, err);
    return 0;
}

/* The scratch buffer holds the key, the label, and the converted value, in this order. */
static int split(const struct lmdb *lmdb, uint64_t sample, struct st_bytes raw,
                 struct st_buffer *scratch, struct st_piece *pieces, struct stoker_error *err)
{
    const struct st_lmdb_entry *entry = entry_of(lmdb, sample), *label;
    int rc = find_label(lmdb, sample, &label, err);
    if (rc)
        return rc;
    const uint64_t after_key = st_align(entry->key_size, 64);
    const uint64_t after_label = after_key + (label ? st_align(label->size, 64) : 0);
    if (!st_buffer_reserve(scratch, after_label + raw.size + 1))
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    for (uint32_t k = 0; k < lmdb->requested.count && !rc; k++) {
        if (lmdb->roles[k] == ROLE_KEY) {
            rc = st_held_read(&lmdb->file, entry->key, scratch->data, entry->key_size, err);
            pieces[k] = (struct st_piece){.bytes = {scratch->data, entry->key_size}};
        } else if (lmdb->roles[k] == ROLE_LABEL && label) {
            rc = make_label(lmdb, &lmdb->fields[k], label, scratch->data + after_key, &pieces[k], err);
        } else {
            rc = make_piece(lmdb, k, raw, scratch->data + after_label, &pieces[k], err);
        }
    }
    return rc;
}

static int lmdb_split(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                      struct st_piece *pieces, struct stoker_error *err)
{
    const int rc = split(self, sample, raw, scratch, pieces, err);
    if (rc) {
        char name[700];
        lmdb_name(self, sample, name, sizeof name);
        st_fail_in(err, rc, name);
    }
    return rc;
}

static const char *lmdb_note(const void *self)
{
    const struct lmdb *lmdb = self;
    return lmdb->note[0] ? lmdb->note : NULL;
}

static void lmdb_close(void *self)
{
    struct lmdb *lmdb = self;
    st_lmdb_release(lmdb->hold);
    st_lmdb_contents_free(&lmdb->contents);
    st_field_list_free(&lmdb->requested);
    st_held_close(&lmdb->file);
}

const struct st_source st_source_lmdb = {
    .scheme = "lmdb",
    .self_size = sizeof(struct lmdb),
    .matches = lmdb_matches,
    .open = lmdb_open,
    .count = lmdb_count,
    .label = st_label_zero,
    .name = lmdb_name,
    .locate = lmdb_locate,
    .fields = lmdb_fields,
    .split = lmdb_split,
    .note = lmdb_note,
    .close = lmdb_close,
};
