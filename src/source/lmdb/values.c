/* values.c - what the values of an LMDB database are, and what is in them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/lmdb/values.h"
#include "source/arrays/npy_header.h"
#include "source/arrays/rows.h"
#include "source/lmdb/datum.h"
#include "source/lmdb/msgpack.h"

#include <string.h>

/* Two bytes at the beginning name the protocol, and the last one ends it. */
static bool is_pickle(struct st_bytes value)
{
    return value.size > 3 && value.data[0] == 0x80 && value.data[1] >= 2 && value.data[1] <= 5 &&
           value.data[value.size - 1] == '.';
}

enum st_lmdb_values st_lmdb_values_of(struct st_bytes first)
{
    struct st_datum datum;
    struct st_bytes image;
    int64_t label;
    if (st_looks_like_image(first))
        return ST_VALUES_PLAIN;
    if (st_datum_parse(&datum, first))
        return ST_VALUES_DATUM;
    if (is_pickle(first))
        return ST_VALUES_PICKLE;
    if (!st_msgpack_is_document(first))
        return ST_VALUES_PLAIN;
    return st_msgpack_pair(first, &image, &label) ? ST_VALUES_PAIR : ST_VALUES_MSGPACK;
}

/* Planes to pixels. Three are blue, green and red: Caffe's tools store what OpenCV reads, in its order.
 */
static void interleave(uint8_t *to, const struct st_datum *datum)
{
    const size_t plane = (size_t)datum->height * (size_t)datum->width,
                 channels = (size_t)datum->channels;
    for (size_t c = 0; c < channels; c++) {
        const size_t place = channels == 3 ? 2 - c : c;
        for (size_t i = 0; i < plane; i++)
            to[i * channels + place] = datum->data.data[c * plane + i];
    }
}

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
                               .dtype = STOKER_DTYPE_U8,
                               .ndim = 3,
                               .shape = {datum.height, datum.width, datum.channels}};
    return 0;
}

int st_lmdb_image(enum st_lmdb_values kind, struct st_bytes value, uint8_t *to, struct st_piece *piece,
                  struct stoker_error *err)
{
    if (kind == ST_VALUES_DATUM)
        return datum_image(value, to, piece, err);
    if (!st_msgpack_pair(value, &piece->bytes, &piece->whole))
        return st_fail(err, STOKER_ECORRUPT,
                       "not an image and a number in MessagePack, as the first value is");
    return 0;
}

int st_lmdb_array(struct st_bytes value, uint8_t *to, struct st_piece *piece, struct stoker_error *err)
{
    const struct st_field_wish wish = {.name = "value", .typed = true, .kind = ST_FIELD_ARRAY};
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
