/* tfrecord_write.c - writes samples as tf.train.Example into TFRecord files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/message.h"

#include "source/checksum/crc32c.h"

#include <string.h>

struct record_writer {
    struct pack_file file;
    struct st_buffer list, feature, entry, features, example;
};

enum list_kind { BYTES_LIST = 1, FLOAT_LIST = 2, INT_LIST = 3 };

static int record_begin(void *self, const struct pack_options *opt, const struct pack_start *start,
                        struct stoker_error *err)
{
    struct record_writer *w = self;
    return pack_file_open(&w->file, opt->folder, start->name, err);
}

/* Whole numbers of any width, as the varints of an Int64List. */
static bool put_ints(struct st_buffer *out, const struct st_piece *piece)
{
    const uint8_t *at = piece->bytes.data;
    const size_t count = piece->bytes.size;
    bool good = true;
    switch (piece->dtype) {
#define X(dtype, type)                                                                                  \
    case dtype:                                                                                         \
        for (size_t i = 0; i < count / sizeof(type) && good; i++) {                                     \
            type value;                                                                                 \
            memcpy(&value, at + i * sizeof value, sizeof value);                                        \
            good = pack_put_varint(out, (uint64_t)(int64_t)value);                                      \
        }                                                                                               \
        return good;
        X(STOKER_DTYPE_I8, int8_t)
        X(STOKER_DTYPE_I16, int16_t)
        X(STOKER_DTYPE_I32, int32_t)
        X(STOKER_DTYPE_I64, int64_t)
        X(STOKER_DTYPE_U16, uint16_t)
        X(STOKER_DTYPE_U32, uint32_t)
        X(STOKER_DTYPE_U64, uint64_t)
        X(STOKER_DTYPE_BOOL, uint8_t)
#undef X
    default:
        return false;
    }
}

/* The values of a field; float32 and whole numbers as such, other numbers as raw bytes. */
static bool put_values(struct record_writer *w, const struct pack_field *field, enum list_kind *kind)
{
    const struct st_piece *piece = &field->piece;
    const float real = (float)piece->real;
    struct st_buffer *list = &w->list;
    *kind = BYTES_LIST;
    list->size = 0;
    if (field->kind == ST_FIELD_INT) {
        *kind = INT_LIST;
        return pack_put_varint(list, (uint64_t)piece->whole);
    }
    if (field->kind == ST_FIELD_FLOAT ||
        (field->kind == ST_FIELD_ARRAY && piece->dtype == STOKER_DTYPE_F32)) {
        *kind = FLOAT_LIST;
        return field->kind == ST_FIELD_FLOAT ? pack_append(list, &real, sizeof real)
                                             : pack_append(list, piece->bytes.data, piece->bytes.size);
    }
    if (field->kind == ST_FIELD_ARRAY && piece->dtype != STOKER_DTYPE_U8 &&
        piece->dtype != STOKER_DTYPE_F64 && piece->dtype != STOKER_DTYPE_F16 &&
        piece->dtype != STOKER_DTYPE_BF16) {
        *kind = INT_LIST;
        return put_ints(list, piece);
    }
    return pack_append(list, piece->bytes.data, piece->bytes.size);
}

/* The names that most image datasets use. */
static const char *feature_name(const struct pack_field *field, bool named)
{
    if (!named && field->kind == ST_FIELD_IMAGE)
        return "image/encoded";
    return !named && field->kind == ST_FIELD_INT ? "image/class/label" : field->name;
}

static bool put_feature(struct record_writer *w, const struct pack_field *field, bool named)
{
    enum list_kind kind;
    const char *name = feature_name(field, named);
    w->feature.size = w->entry.size = 0;
    struct st_buffer lists = {0};
    const bool good =
        put_values(w, field, &kind) && pack_put_bytes(&lists, 1, w->list.data, w->list.size) &&
        pack_put_bytes(&w->feature, kind, lists.data, lists.size) &&
        pack_put_bytes(&w->entry, 1, name, strcspn(name, ";")) && /* the first of several */
        pack_put_bytes(&w->entry, 2, w->feature.data, w->feature.size) &&
        pack_put_bytes(&w->features, 1, w->entry.data, w->entry.size);
    st_buffer_free(&lists);
    return good;
}

static uint32_t masked(const void *bytes, uint64_t size)
{
    const uint32_t crc = st_crc32c(bytes, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static int record_add(void *self, const struct pack_options *opt, struct pack_sample *sample,
                      struct stoker_error *err)
{
    struct record_writer *w = self;
    /* The two fields of a folder have no names. */
    const bool named = !(sample->count == 2 && !strcmp(sample->fields[0].name, "image") &&
                         !strcmp(sample->fields[1].name, "label"));
    bool good = true;
    (void)opt;
    w->features.size = w->example.size = 0;
    for (uint32_t i = 0; i < sample->count && good; i++)
        good = put_feature(w, &sample->fields[i], named);
    if (!good || !pack_put_bytes(&w->example, 1, w->features.data, w->features.size))
        return st_fail(err, STOKER_ENOMEM, "out of memory for a record");
    uint8_t head[12], tail[4];
    const uint64_t length = w->example.size;
    memcpy(head, &length, 8);
    const uint32_t length_sum = masked(head, 8), sum = masked(w->example.data, length);
    memcpy(head + 8, &length_sum, 4);
    memcpy(tail, &sum, 4);
    int rc = pack_file_write(&w->file, head, sizeof head, err);
    if (!rc)
        rc = pack_file_write(&w->file, w->example.data, length, err);
    return rc ? rc : pack_file_write(&w->file, tail, sizeof tail, err);
}

static uint64_t record_size(const void *self) { return ((const struct record_writer *)self)->file.size; }

static void record_drop(void *self, bool leave)
{
    struct record_writer *w = self;
    pack_file_drop(&w->file, leave);
    st_buffer_free(&w->list);
    st_buffer_free(&w->feature);
    st_buffer_free(&w->entry);
    st_buffer_free(&w->features);
    st_buffer_free(&w->example);
}

static int record_finish(void *self, struct st_pack_shard *shard, struct st_pack_beside *beside,
                         struct stoker_error *err)
{
    struct record_writer *w = self;
    (void)beside;
    const int rc = pack_file_finish(&w->file, err);
    shard->bytes = w->file.size;
    shard->crc = w->file.crc;
    return rc;
}

const struct pack_writer pack_writer_tfrecord = {
    .name = "tfrecord",
    .extension = ".tfrecord",
    .sharded = true,
    .self_size = sizeof(struct record_writer),
    .begin = record_begin,
    .add = record_add,
    .size = record_size,
    .finish = record_finish,
    .drop = record_drop,
};
