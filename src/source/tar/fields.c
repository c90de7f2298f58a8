/* fields.c - what the members of a tar file contain, judged by their suffixes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/tar/fields.h"
#include "source/arrays/npy_header.h"
#include "source/text/numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGES "jpg jpeg jpe jfif png apng webp bmp dib ppm pgm pbm pnm tif tiff gif"
#define SOUNDS "wav flac mp3 ogg oga opus"

static const struct {
    enum st_field_kind kind;
    const char *suffixes;
} known[] = {{ST_FIELD_IMAGE, IMAGES},
             {ST_FIELD_AUDIO, SOUNDS},
             {ST_FIELD_INT, "cls cls2 index inx id"},
             {ST_FIELD_TEXT, "txt text transcript"},
             {ST_FIELD_JSON, "json jsn"},
             {ST_FIELD_ARRAY, "npy"}};
static const char pickles[] = "pyd pkl pickle pth pt";

static bool contains_word(const char *words, const char *word, size_t size)
{
    for (const char *at = words; *at;) {
        const size_t length = strcspn(at, " ");
        if (length == size && !memcmp(at, word, size))
            return true;
        at += length + (at[length] == ' ');
    }
    return false;
}

static bool ends_with(const char *text, size_t size, const char *tail)
{
    const size_t length = strlen(tail);
    return size >= length && !memcmp(text + size - length, tail, length);
}

/* The length of a trailing ".gz" or ".zst", which marks a compressed member. */
static size_t packing_tail(const char *suffix, size_t size)
{
    return ends_with(suffix, size, ".gz") ? 3 : ends_with(suffix, size, ".zst") ? 4 : 0;
}

enum st_packing st_tar_suffix_packing(const char *suffix)
{
    const size_t tail = packing_tail(suffix, strlen(suffix));
    return tail == 3 ? ST_PACKED_GZIP : tail == 4 ? ST_PACKED_ZSTD : ST_PACKED_NOT;
}

bool st_tar_suffix_kind(const char *suffix, size_t size, enum st_field_kind *out)
{
    size -= packing_tail(suffix, size);
    const char *dot = memrchr(suffix, '.', size); /* "seg.png" is a png */
    const char *last = dot ? dot + 1 : suffix;
    const size_t length = size - (size_t)(last - suffix);
    *out = ST_FIELD_BYTES;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (contains_word(known[i].suffixes, last, length))
            *out = known[i].kind;
    return !contains_word(pickles, last, length);
}

/* ---- requested fields ------------------------------------------------------------------------ */

static int add_suffix(struct st_tar_field *out, struct st_field *field, const char *at, size_t size,
                      bool typed, struct stoker_error *err)
{
    enum st_field_kind kind;
    const bool harmless = st_tar_suffix_kind(at, size, &kind);
    if (size == 0 || out->count == ST_TAR_ALTERNATIVES)
        return st_fail(err, STOKER_EINVAL, "fields=%.300s: %s", field->name,
                       size ? "more than 8 suffixes for one field" : "contains an empty suffix");
    if (!harmless && !(typed && field->kind == ST_FIELD_BYTES))
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "fields=%.300s: %.*s is a pickle, and loading one can run code; request its "
                       "bytes: %.*s=bytes",
                       field->name, (int)size, at, (int)size, at);
    if (!typed && out->count && kind != field->kind)
        return st_fail(
            err, STOKER_EINVAL,
            "fields=%.300s: %.*s is read as %s, but the suffix before it as %s; give the type, as in "
            "%.300s=bytes",
            field->name, (int)size, at, st_field_kind_name(kind), st_field_kind_name(field->kind),
            field->name);
    if (!typed)
        field->kind = kind;
    out->suffixes[out->count++] = (struct st_bytes){(const uint8_t *)at, size};
    return 0;
}

int st_tar_field_parse(struct st_tar_field *out, struct st_field *field,
                       const struct st_field_request *request, struct stoker_error *err)
{
    *out = (struct st_tar_field){.what = !strcmp(request->name, "__key__")   ? ST_TAR_KEY
                                         : !strcmp(request->name, "__url__") ? ST_TAR_URL
                                                                          : ST_TAR_MEMBER};
    *field =
        (struct st_field){.name = request->name, .kind = request->typed ? request->kind : ST_FIELD_TEXT};
    int rc = 0;
    for (const char *at = request->name; !rc && out->what == ST_TAR_MEMBER;) {
        const size_t size = strcspn(at, ";");
        rc = add_suffix(out, field, at, size, request->typed, err);
        if (!at[size])
            break;
        at += size + 1;
    }
    field->ndim = request->ndim ? request->ndim : field->kind == ST_FIELD_ARRAY ? -1 : 0;
    field->dtype = request->dtype;
    memcpy(field->shape, request->shape, sizeof field->shape);
    return rc;
}

uint32_t st_tar_field_rank(const struct st_tar_field *field, const char *suffix)
{
    const size_t size = strlen(suffix), tail = packing_tail(suffix, size);
    for (uint32_t i = 0; i < field->count; i++) {
        const struct st_bytes *wanted = &field->suffixes[i];
        if (wanted->size == size && !memcmp(wanted->data, suffix, size))
            return 2 * i;
        if (tail && wanted->size == size - tail && !memcmp(wanted->data, suffix, size - tail))
            return 2 * i + 1;
    }
    return UINT32_MAX;
}

/* ---- bytes to pieces ------------------------------------------------------------------------- */

static bool is_npy(struct st_bytes bytes)
{
    return bytes.size > 6 && !memcmp(bytes.data, "\x93NUMPY", 6);
}

/* Treats the array as the only row of an array with one more axis. */
static int array_piece(const struct st_field *field, struct st_bytes bytes, uint8_t *scratch,
                       struct st_piece *out, const char *where, struct stoker_error *err)
{
    struct st_npy npy;
    struct st_rows row;
    const struct st_field_request request = {.name = field->name, .typed = true, .kind = field->kind};
    int rc = st_npy_parse(&npy, bytes, where, err);
    if (!rc)
        rc = st_npy_check_size(&npy, bytes.size, where, err);
    if (!rc && npy.shape.ndim > ST_DIMS_MAX)
        rc = st_fail(err, STOKER_EUNSUPPORTED, "%s: the array has more than %d dimensions", where,
                     ST_DIMS_MAX);
    if (rc)
        return rc;
    struct st_array_shape whole = {.ndim = npy.shape.ndim + 1, .sizes = {1}};
    memcpy(whole.sizes + 1, npy.shape.sizes, (size_t)npy.shape.ndim * sizeof *whole.sizes);
    rc = st_rows_init(&row, &npy.element, &whole, &request, where, err);
    struct st_buffer own = {.data = scratch, .capacity = bytes.size};
    const uint8_t *at = bytes.data + npy.offset;
    return rc ? rc : st_rows_split(&row, 1, &at, &own, out, err);
}

/* Raw elements of the requested dtype and shape. */
static int raw_piece(const struct st_field *field, struct st_bytes bytes, struct st_piece *out,
                     const char *where, struct stoker_error *err)
{
    uint64_t size = st_dtype_size(field->dtype);
    for (int32_t i = 0; i < field->ndim; i++)
        if (!st_mul(size, (uint64_t)field->shape[i], &size))
            size = UINT64_MAX;
    if (size != bytes.size)
        return st_fail(err, STOKER_ECORRUPT,
                       "%s: has %llu bytes, but the requested dtype and shape take %llu", where,
                       (unsigned long long)bytes.size, (unsigned long long)size);
    out->dtype = field->dtype;
    out->ndim = field->ndim;
    memcpy(out->shape, field->shape, sizeof out->shape);
    return 0;
}

static int not_a_number(struct st_bytes bytes, const char *what, const char *where,
                     struct stoker_error *err)
{
    char shown[40];
    size_t used = 0;
    for (; used < bytes.size && used < sizeof shown - 1; used++)
        shown[used] = (char)(bytes.data[used] >= ' ' && bytes.data[used] < 127 ? bytes.data[used] : '?');
    shown[used] = '\0';
    return st_fail(err, STOKER_ECORRUPT, "%s: not %s: \"%s\"", where, what, shown);
}

int st_tar_piece(const struct st_field *field, struct st_bytes bytes, uint8_t *scratch,
                 struct st_piece *out, const char *where, struct stoker_error *err)
{
    *out = (struct st_piece){.bytes = bytes};
    if (field->ndim > 0)
        return raw_piece(field, bytes, out, where, err);
    switch (field->kind) {
    case ST_FIELD_INT:
        return st_text_int(bytes, &out->whole) ? 0 : not_a_number(bytes, "an integer", where, err);
    case ST_FIELD_FLOAT:
        return st_text_float(bytes, &out->real) ? 0 : not_a_number(bytes, "a number", where, err);
    case ST_FIELD_ARRAY:
        return array_piece(field, bytes, scratch, out, where, err);
    case ST_FIELD_IMAGE:
        return is_npy(bytes) ? array_piece(field, bytes, scratch, out, where, err) : 0;
    default:
        return 0;
    }
}
