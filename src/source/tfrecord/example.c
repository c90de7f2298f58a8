/* example.c - parses TensorFlow's Example and SequenceExample messages
 *
 * This is the wire format of protocol buffers: a message is a sequence of fields, each a number, a type
 * and a value.
 *
 *     Example, SequenceExample   1: Features     2: FeatureLists
 *     Features, FeatureLists     1: an entry of the map
 *     an entry                   1: the name     2: Feature or FeatureList
 *     FeatureList                1: Feature, one per step
 *     Feature                    1, 2 or 3: a list of bytes, floats or integers
 *     a list                     1: a value, or (numbers) many packed together
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/tfrecord/example.h"

#include <endian.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static const char damaged[] = "the record is not a tf.train.Example, or is damaged";

struct field {
    uint32_t number, type;
    uint64_t value;        /* WIRE_VARINT */
    struct st_bytes bytes; /* the other types */
};

static bool take_varint(struct st_bytes *from, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 10 && i < from->size; i++) {
        const uint8_t byte = from->data[i];
        value |= (uint64_t)(byte & 127) << 7 * i;
        if (byte < 128) {
            from->data += i + 1;
            from->size -= i + 1;
            *out = value;
            return true;
        }
    }
    return false;
}

static bool take_bytes(struct st_bytes *from, uint64_t size, struct st_bytes *out)
{
    if (size > from->size)
        return false;
    *out = (struct st_bytes){from->data, size};
    from->data += size;
    from->size -= size;
    return true;
}

/* The next field of a message; false: the message is damaged. */
static bool take_field(struct st_bytes *message, struct field *out)
{
    uint64_t tag, size;
    if (!take_varint(message, &tag) || tag >> 3 == 0 || tag >> 32)
        return false;
    *out = (struct field){.number = (uint32_t)(tag >> 3), .type = tag & 7};
    switch (out->type) {
    case WIRE_VARINT:
        return take_varint(message, &out->value);
    case WIRE_64:
        return take_bytes(message, 8, &out->bytes);
    case WIRE_32:
        return take_bytes(message, 4, &out->bytes);
    case WIRE_BYTES:
        return take_varint(message, &size) && take_bytes(message, size, &out->bytes);
    default:
        return false;
    }
}

/* ---- the values of a feature ----------------------------------------------------------------- */

/* Where values go; they are only counted if `ints` and `floats` are NULL. */
struct sink {
    struct st_feature *feature;
    int64_t *ints;
    float *floats;
    bool scattered; /* the floats are not contiguous */
};

static bool take_ints(struct sink *sink, const struct field *field)
{
    struct st_bytes run = field->bytes;
    if (field->type == WIRE_VARINT) {
        if (sink->ints)
            sink->ints[sink->feature->count] = (int64_t)field->value;
        sink->feature->count++;
        return true;
    }
    while (run.size) {
        uint64_t value;
        if (!take_varint(&run, &value))
            return false;
        if (sink->ints)
            sink->ints[sink->feature->count] = (int64_t)value;
        sink->feature->count++;
    }
    return field->type == WIRE_BYTES;
}

static bool take_floats(struct sink *sink, const struct field *field)
{
    struct st_feature *feature = sink->feature;
    if ((field->type != WIRE_BYTES && field->type != WIRE_32) || field->bytes.size % 4)
        return false;
    if (feature->count == 0)
        feature->run = field->bytes.data;
    else if (field->bytes.size && feature->run + 4 * feature->count != field->bytes.data)
        sink->scattered = true;
    for (size_t i = 0; sink->floats && i < field->bytes.size; i += 4) {
        uint32_t bits;
        memcpy(&bits, field->bytes.data + i, 4);
        bits = le32toh(bits);
        memcpy(&sink->floats[feature->count + i / 4], &bits, 4);
    }
    feature->count += field->bytes.size / 4;
    return true;
}

static bool take_list(struct sink *sink, enum st_feature_kind kind, struct st_bytes list)
{
    while (list.size) {
        struct field field;
        if (!take_field(&list, &field))
            return false;
        if (field.number != 1)
            continue;
        if (kind == ST_FEATURE_INTS ? !take_ints(sink, &field)
                                    : kind == ST_FEATURE_FLOATS && !take_floats(sink, &field))
            return false;
        if (kind == ST_FEATURE_BYTES) {
            if (field.type != WIRE_BYTES)
                return false;
            if (sink->feature->count++ == 0)
                sink->feature->first = field.bytes;
        }
    }
    return true;
}

/* If there are lists of several kinds, the last kind counts, starting after the last list of another
 * kind. */
static bool take_feature(struct sink *sink, struct st_bytes message)
{
    enum st_feature_kind kind = ST_FEATURE_NONE;
    struct st_bytes from = message, rest = message;
    struct field field;
    while (rest.size) {
        const struct st_bytes here = rest;
        if (!take_field(&rest, &field))
            return false;
        if (field.number <= ST_FEATURE_INTS && field.type == WIRE_BYTES && field.number != kind) {
            kind = (enum st_feature_kind)field.number;
            from = here;
        }
    }
    if (kind == ST_FEATURE_NONE)
        return true;
    if (sink->feature->kind != ST_FEATURE_NONE && sink->feature->kind != kind)
        return false; /* the steps have different kinds */
    sink->feature->kind = kind;
    while (from.size) {
        if (!take_field(&from, &field) ||
            (field.number == kind && field.type == WIRE_BYTES && !take_list(sink, kind, field.bytes)))
            return false;
    }
    return true;
}

static bool take_values(struct sink *sink)
{
    struct st_feature *feature = sink->feature;
    feature->count = 0;
    feature->kind = ST_FEATURE_NONE;
    if (!feature->list)
        return take_feature(sink, feature->message);
    struct st_bytes steps = feature->message;
    while (steps.size) {
        struct field field;
        if (!take_field(&steps, &field) ||
            (field.number == 1 && field.type == WIRE_BYTES && !take_feature(sink, field.bytes)))
            return false;
    }
    return true;
}

static bool count_values(struct st_feature *feature)
{
    struct sink sink = {.feature = feature};
    feature->run = NULL;
    if (!take_values(&sink))
        return false;
    if (sink.scattered || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        feature->run = NULL;
    return true;
}

void st_feature_ints(const struct st_feature *feature, int64_t *out)
{
    struct st_feature again = *feature;
    struct sink sink = {.feature = &again, .ints = out};
    take_values(&sink);
}

void st_feature_floats(const struct st_feature *feature, float *out)
{
    struct st_feature again = *feature;
    struct sink sink = {.feature = &again, .floats = out};
    take_values(&sink);
}

/* ---- the map --------------------------------------------------------------------------------- */

typedef bool visitor(void *context, struct st_bytes name, struct st_bytes message, bool list);

static bool visit_entry(struct st_bytes entry, bool list, visitor *visit, void *context)
{
    struct st_bytes name = {entry.data, 0}, message = {entry.data, 0};
    while (entry.size) {
        struct field field;
        if (!take_field(&entry, &field))
            return false;
        if (field.type == WIRE_BYTES && field.number == 1)
            name = field.bytes;
        if (field.type == WIRE_BYTES && field.number == 2)
            message = field.bytes;
    }
    return visit(context, name, message, list);
}

/* Calls `visit` for each entry, with `list` set for those of feature lists. */
static const char *visit_map(struct st_bytes record, visitor *visit, void *context)
{
    while (record.size) {
        struct field part;
        if (!take_field(&record, &part))
            return damaged;
        if (part.type != WIRE_BYTES || part.number > 2)
            continue;
        while (part.bytes.size) {
            struct field entry;
            if (!take_field(&part.bytes, &entry))
                return damaged;
            if (entry.number == 1 && entry.type == WIRE_BYTES &&
                !visit_entry(entry.bytes, part.number == 2, visit, context))
                return damaged;
        }
    }
    return NULL;
}

struct search {
    struct st_feature *features;
    uint32_t count, room;
};

static bool is_name(struct st_bytes a, struct st_bytes b)
{
    return a.size == b.size && !memcmp(a.data, b.data, a.size);
}

static bool record_requested(void *context, struct st_bytes name, struct st_bytes message, bool list)
{
    const struct search *search = context;
    for (uint32_t i = 0; i < search->count; i++) {
        struct st_feature *feature = &search->features[i];
        if (is_name(feature->name, name) && (!feature->found || feature->list || !list)) {
            feature->message = message;
            feature->list = list;
            feature->found = true;
        }
    }
    return true;
}

const char *st_example_find(struct st_bytes record, struct st_feature *features, uint32_t count)
{
    struct search search = {features, count, count};
    for (uint32_t i = 0; i < count; i++)
        features[i] = (struct st_feature){.name = features[i].name};
    const char *wrong = visit_map(record, record_requested, &search);
    for (uint32_t i = 0; i < count && !wrong; i++)
        if (features[i].found && !count_values(&features[i]))
            wrong = damaged;
    return wrong;
}

static bool record_any(void *context, struct st_bytes name, struct st_bytes message, bool list)
{
    struct search *search = context;
    if (search->count == search->room)
        return true;
    struct st_feature *feature = &search->features[search->count++];
    *feature = (struct st_feature){.name = name, .message = message, .list = list, .found = true};
    return count_values(feature);
}

const char *st_example_list(struct st_bytes record, struct st_feature *features, uint32_t room,
                            uint32_t *count)
{
    struct search search = {features, 0, room};
    const char *wrong = visit_map(record, record_any, &search);
    *count = search.count;
    return wrong;
}
