/* rows.c - arrays whose first axis is the samples: shared by npy, npz and HDF5
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/arrays/rows.h"
#include "source/text/utf8.h"

#include <math.h>
#include <string.h>

/* Larger rows are rejected, the same limit as st_fetch has for a sample. */
#define ROW_MAX (4ull << 30)

/* ---- kinds of rows ---------------------------------------------------------------------------- */

static bool dtype_of(const struct st_element *element, enum stoker_dtype *out)
{
    static const struct {
        char type;
        uint8_t size;
        enum stoker_dtype dtype;
    } known[] = {
        {'u', 1, STOKER_DTYPE_U8},  {'u', 2, STOKER_DTYPE_U16}, {'u', 4, STOKER_DTYPE_U32},
        {'u', 8, STOKER_DTYPE_U64}, {'i', 1, STOKER_DTYPE_I8},  {'i', 2, STOKER_DTYPE_I16},
        {'i', 4, STOKER_DTYPE_I32}, {'i', 8, STOKER_DTYPE_I64}, {'f', 2, STOKER_DTYPE_F16},
        {'f', 4, STOKER_DTYPE_F32}, {'f', 8, STOKER_DTYPE_F64}, {'b', 1, STOKER_DTYPE_BOOL},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].type == element->type && known[i].size == element->size) {
            *out = known[i].dtype;
            return true;
        }
    return false;
}

static bool is_string(char type) { return type == 'S' || type == 'U' || type == 'V'; }

static bool is_pixels(const struct st_rows *rows)
{
    const struct st_field *field = &rows->field;
    return !is_string(rows->element.type) && st_is_pixels(field->dtype, field->ndim, field->shape);
}

static bool is_byte_row(const struct st_rows *rows)
{
    return (rows->field.dtype == STOKER_DTYPE_U8 && rows->field.ndim == 1) ||
           (rows->scalar && (rows->element.type == 'S' || rows->element.type == 'V'));
}

static enum st_field_kind default_kind(const struct st_rows *rows)
{
    if (is_string(rows->element.type))
        return rows->element.type == 'V' ? ST_FIELD_BYTES : ST_FIELD_TEXT;
    if (rows->scalar)
        return rows->element.type == 'f' ? ST_FIELD_FLOAT : ST_FIELD_INT;
    return is_pixels(rows) ? ST_FIELD_IMAGE : ST_FIELD_ARRAY;
}

static bool can_be(const struct st_rows *rows, enum st_field_kind kind)
{
    const char type = rows->element.type;
    switch (kind) {
    case ST_FIELD_IMAGE:
        return is_pixels(rows) || is_byte_row(rows);
    case ST_FIELD_INT:
        return rows->scalar && !is_string(type) && type != 'f';
    case ST_FIELD_FLOAT:
        return rows->scalar && !is_string(type);
    case ST_FIELD_ARRAY:
        return !is_string(type);
    case ST_FIELD_BYTES:
        return type != 'U';
    case ST_FIELD_TEXT:
    case ST_FIELD_JSON:
        return is_byte_row(rows) || (rows->scalar && type == 'U');
    case ST_FIELD_AUDIO:
        return is_byte_row(rows);
    }
    return false;
}

static int choose_kind(struct st_rows *rows, const struct st_field_request *request, const char *where,
                       struct stoker_error *err)
{
    struct st_field *field = &rows->field;
    field->kind = request->typed ? request->kind : default_kind(rows);
    if (!can_be(rows, field->kind))
        return st_fail(
            err, STOKER_EINVAL, "%s: rows of %d dimensions and type %c%u cannot be read as %s", where,
            field->ndim, rows->element.type, rows->element.size, st_field_kind_name(field->kind));
    if (field->kind == ST_FIELD_IMAGE && !is_pixels(rows))
        field->ndim = 0; /* encoded */
    return 0;
}

int st_rows_init(struct st_rows *rows, const struct st_element *element,
                 const struct st_array_shape *shape, const struct st_field_request *request,
                 const char *where, struct stoker_error *err)
{
    *rows = (struct st_rows){.field.name = request->name, .element = *element};
    if (shape->ndim < 1)
        return st_fail(err, STOKER_EINVAL, "%s: is a single value; only arrays have rows", where);
    rows->count = shape->sizes[0];
    rows->row_bytes = element->size;
    rows->scalar = shape->ndim == 1;
    rows->field.ndim = shape->ndim - 1;
    for (int32_t i = 1; i < shape->ndim; i++) {
        rows->field.shape[i - 1] = (int64_t)shape->sizes[i];
        if (shape->sizes[i] > ROW_MAX || !st_mul(rows->row_bytes, shape->sizes[i], &rows->row_bytes))
            rows->row_bytes = UINT64_MAX;
    }
    if (rows->row_bytes > ROW_MAX)
        return st_fail(err, STOKER_ELIMIT, "%s: a row has more than 4 GiB, the limit for a sample",
                       where);
    if (is_string(element->type) && !rows->scalar)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "%s: a row has several strings; at most one is supported", where);
    if (!is_string(element->type) && !dtype_of(element, &rows->field.dtype))
        return st_fail(err, STOKER_EUNSUPPORTED, "%s: elements of type %c%u are not supported",
                       where, element->type, element->size);
    return choose_kind(rows, request, where, err);
}

/* ---- rows to pieces ----------------------------------------------------------------------------- */

static void swap_bytes(uint8_t *to, const uint8_t *from, uint64_t bytes, uint32_t size)
{
    for (uint64_t at = 0; at < bytes; at += size)
        for (uint32_t k = 0; k < size; k++)
            to[at + k] = from[at + size - 1 - k];
}

/* Converts UCS-4 padded with zeros. The result is never longer than the input. */
static uint64_t to_utf8(uint8_t *to, const uint8_t *from, uint64_t bytes, bool swapped)
{
    uint8_t *at = to;
    uint64_t last = 0;
    for (uint64_t i = 0; i + 4 <= bytes; i += 4) {
        uint32_t point;
        memcpy(&point, from + i, 4);
        at = st_put_utf8(at, swapped ? __builtin_bswap32(point) : point);
        if (point)
            last = (uint64_t)(at - to);
    }
    return last;
}

static uint64_t without_padding(const uint8_t *text, uint64_t size)
{
    while (size && !text[size - 1])
        size--;
    return size;
}

static double half_to_double(uint16_t half)
{
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                        : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                       : ldexp(fraction, -24);
    return half & 0x8000 ? -size : size;
}

#define LOAD(type_)                                                                                     \
    {                                                                                                   \
        type_ value;                                                                                    \
        memcpy(&value, bytes, sizeof value);                                                            \
        piece->whole = (int64_t)value;                                                                  \
        piece->real = (double)value;                                                                    \
        break;                                                                                          \
    }

static void load_scalar(const struct st_rows *rows, const uint8_t *at, struct st_piece *piece)
{
    uint8_t bytes[8] = {0};
    if (rows->element.swapped)
        swap_bytes(bytes, at, rows->element.size, rows->element.size);
    else
        memcpy(bytes, at, rows->element.size);
    switch (rows->field.dtype) {
    case STOKER_DTYPE_U8:
        LOAD(uint8_t)
    case STOKER_DTYPE_U16:
        LOAD(uint16_t)
    case STOKER_DTYPE_U32:
        LOAD(uint32_t)
    case STOKER_DTYPE_U64:
        LOAD(uint64_t)
    case STOKER_DTYPE_I8:
        LOAD(int8_t)
    case STOKER_DTYPE_I16:
        LOAD(int16_t)
    case STOKER_DTYPE_I32:
        LOAD(int32_t)
    case STOKER_DTYPE_I64:
        LOAD(int64_t)
    case STOKER_DTYPE_BOOL:
        piece->whole = bytes[0] != 0;
        piece->real = bytes[0] != 0;
        break;
    case STOKER_DTYPE_F32: {
        float value;
        memcpy(&value, bytes, sizeof value);
        piece->real = (double)value;
        break;
    }
    case STOKER_DTYPE_F64:
        memcpy(&piece->real, bytes, sizeof piece->real);
        break;
    case STOKER_DTYPE_F16:
    case STOKER_DTYPE_BF16: { /* no file format contains BF16 */
        uint16_t value;
        memcpy(&value, bytes, sizeof value);
        piece->real = half_to_double(value);
        break;
    }
    }
}

static bool is_number(const struct st_rows *rows)
{
    return rows->field.kind == ST_FIELD_INT || rows->field.kind == ST_FIELD_FLOAT;
}

static uint64_t scratch_needed(const struct st_rows *rows)
{
    const bool changed = rows->element.type == 'U' || (rows->element.swapped && rows->element.size > 1);
    return changed && !is_number(rows) ? rows->row_bytes : 0;
}

/* Integers are delivered as int64: one that does not fit is an error, not a different number. */
static int check_int64(const struct st_rows *rows, const struct st_piece *piece,
                       struct stoker_error *err)
{
    if (rows->field.kind != ST_FIELD_INT || rows->field.dtype != STOKER_DTYPE_U64 || piece->whole >= 0)
        return 0;
    return st_fail(err, STOKER_EUNSUPPORTED,
                   "%s: %llu does not fit into int64, which integers are delivered as; read the field "
                   "as %s=array, which stays uint64",
                   rows->field.name, (unsigned long long)piece->whole, rows->field.name);
}

static int make_piece(const struct st_rows *rows, const uint8_t *at, uint8_t *scratch,
                      struct st_piece *piece, struct stoker_error *err)
{
    const struct st_field *field = &rows->field;
    const char type = rows->element.type;
    *piece =
        (struct st_piece){.bytes = {at, rows->row_bytes}, .dtype = field->dtype, .ndim = field->ndim};
    memcpy(piece->shape, field->shape, sizeof piece->shape);
    if (is_number(rows)) {
        load_scalar(rows, at, piece);
        return check_int64(rows, piece, err);
    } else if (type == 'U') {
        piece->bytes =
            (struct st_bytes){scratch, to_utf8(scratch, at, rows->row_bytes, rows->element.swapped)};
    } else if (type == 'S') {
        piece->bytes.size = without_padding(at, rows->row_bytes);
    } else if (scratch_needed(rows)) {
        swap_bytes(scratch, at, rows->row_bytes, rows->element.size);
        piece->bytes.data = scratch;
    }
    return 0;
}

int st_rows_split(const struct st_rows *rows, uint32_t count, const uint8_t *const *at,
                  struct st_buffer *scratch, struct st_piece *pieces, struct stoker_error *err)
{
    uint64_t needed = 0, used = 0;
    for (uint32_t i = 0; i < count; i++)
        needed += st_align(scratch_needed(&rows[i]), 8);
    if (!st_buffer_reserve(scratch, needed))
        return st_fail(err, STOKER_ENOMEM, "out of memory for a row of %llu bytes",
                       (unsigned long long)needed);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t own = st_align(scratch_needed(&rows[i]), 8);
        const int rc = make_piece(&rows[i], at[i], own ? scratch->data + used : NULL, &pieces[i], err);
        if (rc)
            return rc;
        used += own;
    }
    return 0;
}
