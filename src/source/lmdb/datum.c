/* datum.c - parses Caffe's Datum, a protocol buffer with an image and a label
 *
 * Fields: 1 channels, 2 height, 3 width, 4 data, 5 label, 6 float_data (repeated), 7 encoded. As in any
 * protocol buffer, they come in any order, the last of several counts, and unknown ones are skipped.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/lmdb/datum.h"

enum wire { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

struct cursor {
    const uint8_t *at, *end;
};

static bool take_varint(struct cursor *c, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        const uint8_t byte = *c->at++;
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

static bool take_bytes(struct cursor *c, uint64_t size, struct st_bytes *out)
{
    if (size > (uint64_t)(c->end - c->at))
        return false;
    *out = (struct st_bytes){c->at, size};
    c->at += size;
    return true;
}

/* Parses one field: a number, or bytes. */
static bool take_field(struct cursor *c, uint32_t *field, enum wire *wire, uint64_t *number,
                       struct st_bytes *bytes)
{
    uint64_t tag;
    *number = 0;
    if (!take_varint(c, &tag) || tag >> 3 == 0 || tag >> 3 > 536870911)
        return false;
    *field = (uint32_t)(tag >> 3);
    *wire = (enum wire)(tag & 7);
    switch (*wire) {
    case WIRE_VARINT:
        return take_varint(c, number);
    case WIRE_64:
        return take_bytes(c, 8, bytes);
    case WIRE_BYTES:
        return take_varint(c, number) && take_bytes(c, *number, bytes);
    case WIRE_32:
        return take_bytes(c, 4, bytes);
    }
    return false;
}

static bool is_valid(const struct st_datum *datum)
{
    if (datum->encoded)
        return datum->data.size > 0;
    if (datum->channels < 1 || datum->height < 1 || datum->width < 1)
        return false;
    const uint64_t plane = (uint64_t)datum->height * (uint64_t)datum->width;
    return datum->floats ||
           (datum->data.size % plane == 0 && datum->data.size / plane == (uint64_t)datum->channels);
}

bool st_datum_parse(struct st_datum *out, struct st_bytes message)
{
    struct cursor c = {message.data, message.data + message.size};
    *out = (struct st_datum){0};
    while (c.at < c.end) {
        uint32_t field;
        enum wire wire;
        uint64_t number;
        struct st_bytes bytes;
        if (!take_field(&c, &field, &wire, &number, &bytes))
            return false;
        if (wire == WIRE_VARINT && field <= 3 && number > INT32_MAX)
            return false;
        if (wire == WIRE_VARINT && field == 1)
            out->channels = (int32_t)number;
        else if (wire == WIRE_VARINT && field == 2)
            out->height = (int32_t)number;
        else if (wire == WIRE_VARINT && field == 3)
            out->width = (int32_t)number;
        else if (wire == WIRE_BYTES && field == 4)
            out->data = bytes;
        else if (wire == WIRE_VARINT && field == 5)
            out->label = (int32_t)number;
        else if ((wire == WIRE_32 || wire == WIRE_BYTES) && field == 6)
            out->floats = true;
        else if (wire == WIRE_VARINT && field == 7)
            out->encoded = number != 0;
    }
    out->floats = out->floats && !out->data.size;
    return is_valid(out);
}
