/* tfrecord.c - samples in TFRecord files: TensorFlow's records of tf.train.Example or SequenceExample
 *
 * A field is a feature, given by name and type:
 *
 *     image, audio, text, json, bytes      the only value of a bytes list
 *     int, float                           the only value of a list of numbers
 *     int[2x?], float[]                    all values, in this shape; for a feature list of a
 *                                          SequenceExample the values of all steps
 *     u8[32x32], f32[?x3], image[?x32x3]   raw elements or pixels in a bytes value
 *
 * Without a type, the first record decides.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/tfrecord/example.h"
#include "source/fields/field_shape.h"
#include "source/kinds.h"
#include "source/tfrecord/frames.h"
#include "source/reader/ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tfrecord {
    struct st_shards shards;
    char *default_fields; /* chosen when the user requested none */
    struct st_field_list requested;
    struct st_field_shape shapes[ST_FIELDS_MAX];
    struct st_field fields[ST_FIELDS_MAX];
    struct st_bytes names[ST_FIELDS_MAX];
};

/* ---- locating records --------------------------------------------------------------------------- */

static int tfrecord_locate(const void *self, uint64_t sample, struct st_extent *out,
                           struct stoker_error *err)
{
    const struct tfrecord *records = self;
    uint64_t local;
    const struct st_shard *shard = st_shards_find(&records->shards, sample, &local);
    const struct st_shard_part *part = &shard->index.parts[local];
    return st_shard_locate(&records->shards, shard, part->start, part->end, out, err);
}

static int wrong_record(const struct tfrecord *records, uint64_t sample, const char *what,
                        struct stoker_error *err)
{
    uint64_t local;
    const struct st_shard *shard = st_shards_find(&records->shards, sample, &local);
    return st_fail(err, STOKER_ECORRUPT, "%.600s: byte %llu: %s", shard->file.path,
                   (unsigned long long)shard->index.parts[local].start, what);
}

/* ---- features to pieces ------------------------------------------------------------------------- */

static int no_feature(const struct tfrecord *records, uint64_t sample, uint32_t field,
                      struct st_bytes record, struct stoker_error *err)
{
    enum { LISTED = 32 };
    struct st_feature features[LISTED];
    struct st_name_list has = {0};
    char what[700];
    uint32_t count = 0;
    if (st_example_list(record, features, LISTED, &count))
        count = 0;
    for (uint32_t i = 0; i < count; i++)
        st_name_list_add(&has, (const char *)features[i].name.data, features[i].name.size);
    snprintf(what, sizeof what, "the record has no feature %.200s; it has %s",
             records->fields[field].name, count ? has.text : "none");
    return wrong_record(records, sample, what, err);
}

static int mismatch(const struct tfrecord *records, uint64_t sample, uint32_t field,
                    struct st_bytes record, const struct st_feature *feature, struct stoker_error *err)
{
    static const char *const kinds[] = {"nothing", "bytes values", "floats", "integers"};
    char what[400];
    if (!feature->found || feature->kind == ST_FEATURE_NONE)
        return no_feature(records, sample, field, record, err);
    else
        snprintf(what, sizeof what, "the feature %.200s has %llu %s, which do not fit %s%s",
                 records->fields[field].name, (unsigned long long)feature->count, kinds[feature->kind],
                 st_field_kind_name(records->fields[field].kind),
                 records->shapes[field].given ? " of the requested shape" : "");
    return wrong_record(records, sample, what, err);
}

/* The kind of feature that a field requires. */
static enum st_feature_kind wanted_kind(const struct st_field *field, const struct st_field_shape *shape)
{
    const bool bytes = shape->raw || (field->kind != ST_FIELD_INT && field->kind != ST_FIELD_FLOAT &&
                                      field->kind != ST_FIELD_ARRAY);
    if (bytes)
        return ST_FEATURE_BYTES;
    return field->kind == ST_FIELD_INT ||
                   (field->kind == ST_FIELD_ARRAY && field->dtype == STOKER_DTYPE_I64)
               ? ST_FEATURE_INTS
               : ST_FEATURE_FLOATS;
}

/* Computes the scratch bytes that the field's values need; false: they do not fit the field. Fills in
 * the piece except for its bytes. */
static bool measure_piece(const struct st_field *field, const struct st_field_shape *shape,
                          const struct st_feature *feature, struct st_piece *piece, uint64_t *needed)
{
    *needed = 0;
    *piece = (struct st_piece){.dtype = field->dtype, .ndim = shape->given ? shape->ndim : 0};
    const enum st_feature_kind wanted = wanted_kind(field, shape);
    if (feature->list && feature->kind == ST_FEATURE_NONE && wanted != ST_FEATURE_BYTES) /* no steps */
        return shape->given && st_field_shape_fit(shape, 0, piece->shape);
    if (!feature->found || feature->kind != wanted)
        return false;
    if (feature->kind == ST_FEATURE_BYTES) {
        piece->bytes = feature->first;
        const uint32_t size = shape->given ? st_dtype_size(field->dtype) : 1;
        return feature->count == 1 && feature->first.size % size == 0 &&
               (!shape->given || st_field_shape_fit(shape, feature->first.size / size, piece->shape));
    }
    const uint64_t each = feature->kind == ST_FEATURE_INTS ? sizeof(int64_t) : sizeof(float);
    if (!(feature->kind == ST_FEATURE_FLOATS && feature->run) && !st_mul(feature->count, each, needed))
        return false;
    return shape->given ? st_field_shape_fit(shape, feature->count, piece->shape) : feature->count == 1;
}

static void fill_piece(const struct st_field *field, const struct st_feature *feature, uint8_t *scratch,
                       struct st_piece *piece)
{
    float real;
    if (feature->kind == ST_FEATURE_BYTES || feature->kind == ST_FEATURE_NONE)
        return;
    if (field->kind == ST_FIELD_INT) {
        st_feature_ints(feature, &piece->whole);
    } else if (field->kind == ST_FIELD_FLOAT) {
        st_feature_floats(feature, &real);
        piece->real = (double)real;
    } else if (feature->kind == ST_FEATURE_INTS) {
        st_feature_ints(feature, (int64_t *)(void *)scratch);
        piece->bytes = (struct st_bytes){scratch, feature->count * sizeof(int64_t)};
    } else {
        if (!feature->run)
            st_feature_floats(feature, (float *)(void *)scratch);
        piece->bytes =
            (struct st_bytes){feature->run ? feature->run : scratch, feature->count * sizeof(float)};
    }
}

static int make_pieces(const struct tfrecord *records, uint64_t sample, struct st_bytes record,
                       const struct st_feature *features, struct st_buffer *scratch,
                       struct st_piece *pieces, struct stoker_error *err)
{
    uint64_t needed[ST_FIELDS_MAX], all = 0;
    for (uint32_t i = 0; i < records->requested.count; i++) {
        if (!measure_piece(&records->fields[i], &records->shapes[i], &features[i], &pieces[i],
                           &needed[i]))
            return mismatch(records, sample, i, record, &features[i], err);
        all += st_align(needed[i], ST_CACHE_LINE);
    }
    if (!st_buffer_reserve(scratch, all + 1))
        return st_fail(err, STOKER_ENOMEM, "out of memory for a sample of %llu bytes",
                       (unsigned long long)all);
    uint64_t used = 0;
    for (uint32_t i = 0; i < records->requested.count; i++) {
        fill_piece(&records->fields[i], &features[i], scratch->data + used, &pieces[i]);
        used += st_align(needed[i], ST_CACHE_LINE);
    }
    return 0;
}

static int tfrecord_split(const void *self, uint64_t sample, struct st_bytes raw,
                          struct st_buffer *scratch, struct st_piece *pieces, struct stoker_error *err)
{
    const struct tfrecord *records = self;
    struct st_bytes record;
    struct st_feature features[ST_FIELDS_MAX];
    const char *wrong = st_record_open(raw, &record);
    for (uint32_t i = 0; i < records->requested.count; i++)
        features[i].name = records->names[i];
    if (!wrong)
        wrong = st_example_find(record, features, records->requested.count);
    return wrong ? wrong_record(records, sample, wrong, err)
                 : make_pieces(records, sample, record, features, scratch, pieces, err);
}

/* ---- fields ------------------------------------------------------------------------------------- */

/* The type to request a feature with. */
static const char *type_of(const struct st_feature *feature)
{
    const bool one = feature->count == 1 && !feature->list;
    switch (feature->kind) {
    case ST_FEATURE_BYTES:
        return st_looks_like_image(feature->first) ? "image" : "bytes";
    case ST_FEATURE_INTS:
        return one ? "int" : "int[]";
    case ST_FEATURE_FLOATS:
        return one ? "float" : "float[]";
    default:
        return NULL;
    }
}

/* The features of the first valid record. Returns how many; 0 if there is none. */
static uint32_t first_features(const struct tfrecord *records, struct st_feature *features,
                               uint32_t room, struct st_buffer *buffer)
{
    enum { ATTEMPTS = 8 };
    uint32_t count = 0;
    for (uint64_t i = 0; i < records->shards.sample_count && i < ATTEMPTS && !count; i++) {
        struct st_extent extent = {0};
        struct st_bytes raw, record;
        if (tfrecord_locate(records, i, &extent, NULL))
            continue;
        if (!extent.memory && st_fetch(&extent, buffer, NULL))
            continue;
        raw = extent.memory ? (struct st_bytes){extent.memory, extent.length}
                            : (struct st_bytes){buffer->data, buffer->size};
        if (st_record_open(raw, &record) || st_example_list(record, features, room, &count))
            count = 0;
    }
    return count;
}

static int by_name(const void *a, const void *b)
{
    const struct st_feature *left = a, *right = b;
    const size_t size = left->name.size < right->name.size ? left->name.size : right->name.size;
    const int order = memcmp(left->name.data, right->name.data, size);
    return order ? order : (left->name.size > right->name.size) - (left->name.size < right->name.size);
}

/* Whether a name can be written in a field list. */
static bool is_plain(struct st_bytes name)
{
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] < ' ' || strchr(",=[", name.data[i]))
            return false;
    return name.size > 0 && name.size < 200;
}

/* Lists all features of a record: images first, the rest by name. */
static char *list_features(struct st_feature *features, uint32_t count)
{
    char *list = st_calloc(ST_FIELDS_MAX, 220);
    size_t used = 0;
    uint32_t taken = 0;
    if (count)
        qsort(features, count, sizeof *features, by_name);
    for (int pass = 0; list && pass < 2; pass++)
        for (uint32_t i = 0; i < count && taken < ST_FIELDS_MAX; i++) {
            const char *type = type_of(&features[i]);
            const bool duplicate = i + 1 < count && !by_name(&features[i], &features[i + 1]);
            if (!type || duplicate || !is_plain(features[i].name) ||
                (features[i].kind == ST_FEATURE_BYTES && features[i].count != 1) ||
                !strcmp(type, "image") != !pass)
                continue;
            used +=
                (size_t)sprintf(list + used, "%s%.*s=%s", used ? "," : "", (int)features[i].name.size,
                                (const char *)features[i].name.data, type);
            taken++;
        }
    return list;
}

/* Sets the type of a field requested without one, according to the first record. */
static void infer_type(struct st_field_request *request, struct st_field_shape *shape,
                        const struct st_feature *features, uint32_t count)
{
    request->kind = ST_FIELD_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        const char *type = type_of(&features[i]);
        if (!type || features[i].name.size != strlen(request->name) ||
            memcmp(features[i].name.data, request->name, features[i].name.size))
            continue;
        request->kind = type[0] == 'i' && type[1] == 'm' ? ST_FIELD_IMAGE
                     : type[0] == 'i'                 ? ST_FIELD_INT
                     : type[0] == 'f'                 ? ST_FIELD_FLOAT
                                                      : ST_FIELD_BYTES;
        if (strchr(type, '['))
            *shape = (struct st_field_shape){.given = true, .ndim = 1, .shape = {-1}};
    }
}

/* Converts a request to a field. */
static int make_field(struct st_field *field, const struct st_field_request *request,
                        const struct st_field_shape *shape, struct stoker_error *err)
{
    const bool numbers = request->kind == ST_FIELD_INT || request->kind == ST_FIELD_FLOAT;
    *field = (struct st_field){.name = request->name, .kind = request->kind};
    if (request->kind == ST_FIELD_ARRAY && !shape->raw)
        return st_fail(
            err, STOKER_EINVAL,
            "fields: %.300s=array: give the type of its elements, as in int[], float[2x4] or u8[32x32]",
            request->name);
    if (!shape->given)
        return 0;
    if (!numbers && !shape->raw && request->kind != ST_FIELD_IMAGE)
        return st_fail(err, STOKER_EINVAL, "fields: %.300s: the type %s does not take a shape",
                       request->name, st_field_kind_name(request->kind));
    if (request->kind == ST_FIELD_IMAGE && shape->ndim != 2 && shape->ndim != 3)
        return st_fail(err, STOKER_EINVAL,
                       "fields: %.300s: the shape of pixels must have 2 or 3 dimensions", request->name);
    if (numbers)
        field->kind = ST_FIELD_ARRAY;
    field->dtype = shape->raw                     ? shape->dtype
                   : request->kind == ST_FIELD_INT   ? STOKER_DTYPE_I64
                   : request->kind == ST_FIELD_FLOAT ? STOKER_DTYPE_F32
                                                  : STOKER_DTYPE_U8;
    field->ndim = shape->ndim;
    memcpy(field->shape, shape->shape, sizeof field->shape);
    return 0;
}

static int make_fields(struct tfrecord *records, const char *path, const char *requested,
                         struct stoker_error *err)
{
    enum { ROOM = 256 };
    struct st_buffer buffer = {0};
    struct st_feature *features = st_calloc(ROOM, sizeof *features);
    if (!features)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
    const uint32_t count = first_features(records, features, ROOM, &buffer);
    int rc = 0;
    if (!requested && records->shards.sample_count) {
        records->default_fields = list_features(features, count);
        if (!records->default_fields || !records->default_fields[0])
            rc = st_fail(
                err, STOKER_EINVAL,
                "%.600s: the first records are not tf.train.Example messages with features; set fields=",
                path);
    }
    if (!rc)
        rc = st_field_shapes_parse(&records->requested, records->shapes,
                                   requested ? requested : records->default_fields, err);
    for (uint32_t i = 0; i < records->requested.count && !rc; i++) {
        struct st_field_request *request = &records->requested.items[i];
        if (!request->typed)
            infer_type(request, &records->shapes[i], features, count);
        records->names[i] = (struct st_bytes){(const uint8_t *)request->name, strlen(request->name)};
        rc = make_field(&records->fields[i], request, &records->shapes[i], err);
    }
    free(features);
    st_buffer_free(&buffer);
    return rc;
}

/* ---- the source --------------------------------------------------------------------------------- */

static int tfrecord_open(void *self, const char *path, const struct stoker_dataset_options *opt,
                         struct stoker_error *err)
{
    struct tfrecord *records = self;
    const int rc = st_shards_open(&records->shards, &st_shard_kind_record, path, opt, err);
    return rc ? rc : make_fields(records, path, opt->fields, err);
}

/* "x.tfrecord", "x.tfrecord-00003-of-00010", "x.tfrec"; or a first length with a matching checksum. */
static bool tfrecord_matches(const char *path, const uint8_t *head, size_t size)
{
    const char *slash = strrchr(path, '/');
    uint64_t length;
    return (strstr(slash ? slash : path, ".tfrec") && !st_shard_is_folder(path)) ||
           (size >= ST_RECORD_HEAD && st_record_length(head, &length));
}

static uint64_t tfrecord_count(const void *self)
{
    return ((const struct tfrecord *)self)->shards.sample_count;
}

static size_t tfrecord_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    uint64_t local;
    const struct st_shard *shard =
        st_shards_find(&((const struct tfrecord *)self)->shards, sample, &local);
    const int length =
        snprintf(buffer, size, "%s: record %llu", shard->file.path, (unsigned long long)local);
    return length > 0 ? (size_t)length : 0;
}

static const struct st_field *tfrecord_fields(const void *self, uint32_t *count)
{
    const struct tfrecord *records = self;
    *count = records->requested.count;
    return records->fields;
}

static uint64_t tfrecord_memory(const void *self)
{
    return st_shards_memory(&((const struct tfrecord *)self)->shards);
}

static const char *tfrecord_note(const void *self)
{
    return st_shards_note(&((const struct tfrecord *)self)->shards);
}

static void tfrecord_close(void *self)
{
    struct tfrecord *records = self;
    st_shards_close(&records->shards);
    st_field_list_free(&records->requested);
    free(records->default_fields);
}

const struct st_source st_source_tfrecord = {
    .scheme = "tfrecord",
    .self_size = sizeof(struct tfrecord),
    .matches = tfrecord_matches,
    .lists = true,
    .open = tfrecord_open,
    .count = tfrecord_count,
    .label = st_label_zero,
    .name = tfrecord_name,
    .locate = tfrecord_locate,
    .fields = tfrecord_fields,
    .split = tfrecord_split,
    .memory = tfrecord_memory,
    .note = tfrecord_note,
    .close = tfrecord_close,
};
