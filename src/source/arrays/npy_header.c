/* npy_header.c - parses the header of numpy's npy format
 *
 * The magic bytes and a length are followed by a dictionary in Python syntax:
 * {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
 * Only what numpy itself writes is accepted: three keys, strings without escapes, integers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/arrays/npy_header.h"
#include "source/text/cursor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool take_string(struct st_text *text, char *out, size_t room)
{
    st_text_skip_blanks(text);
    if (text->at == text->end || (*text->at != '\'' && *text->at != '"'))
        return false;
    const char quote = *text->at++;
    const char *end = memchr(text->at, quote, (size_t)(text->end - text->at));
    const size_t size = end ? (size_t)(end - text->at) : room;
    if (size >= room || memchr(text->at, '\\', size))
        return false;
    memcpy(out, text->at, size);
    out[size] = '\0';
    text->at = end + 1;
    return true;
}

static bool take_number(struct st_text *text, uint64_t *out)
{
    st_text_skip_blanks(text);
    const char *from = text->at;
    *out = 0;
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
        if (!st_mul(*out, 10, out) || !st_add(*out, (uint64_t)(*text->at - '0'), out))
            return false;
    const bool some = text->at > from;
    if (some && text->at < text->end && *text->at == 'L') /* Python 2 */
        text->at++;
    return some && *out <= INT64_MAX;
}

static bool take_shape(struct st_text *text, struct st_array_shape *shape)
{
    uint64_t beyond;
    shape->ndim = 0;
    if (!st_text_take(text, '('))
        return false;
    while (!st_text_take(text, ')')) {
        if (!take_number(text, shape->ndim <= ST_DIMS_MAX ? &shape->sizes[shape->ndim] : &beyond))
            return false;
        shape->ndim++;
        if (!st_text_take(text, ','))
            return st_text_take(text, ')');
    }
    return true;
}

/* "<f4": byte order, kind and size. */
static int read_type(struct st_element *element, const char *descr, const char *where,
                     struct stoker_error *err)
{
    const char order = descr[0];
    element->type = order ? descr[1] : '\0';
    if (element->type == 'O')
        return st_fail(
            err, STOKER_EUNSUPPORTED,
            "%s: an array of Python objects is a pickle, which is never loaded because it can run code",
            where);
    if (!order || !strchr("<>|=", order) || !element->type)
        return st_fail(err, STOKER_ECORRUPT, "%s: the type %s is not one of numpy's", where, descr);
    char *end;
    const unsigned long long size = strtoull(descr + 2, &end, 10);
    if (!strchr("iufbSUV", element->type) || *end || end == descr + 2 || descr[2] == '-' ||
        size > (1u << 30) / 4)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "%s: elements of type %s are not supported; supported are integers, floats, bool "
                       "and strings",
                       where, descr);
    element->size = (uint32_t)size * (element->type == 'U' ? 4 : 1);
    const bool foreign = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? order == '>' : order == '<';
    element->swapped = foreign && element->type != 'S' && element->type != 'V';
    return 0;
}

enum { HAS_TYPE = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

static int read_entry(struct st_npy *out, struct st_text *text, unsigned *seen, const char *where,
                      struct stoker_error *err)
{
    char key[20], descr[20];
    bool good = take_string(text, key, sizeof key) && st_text_take(text, ':');
    unsigned this = 0;
    if (good && !strcmp(key, "descr")) {
        this = HAS_TYPE;
        st_text_skip_blanks(text);
        if (text->at < text->end && *text->at == '[')
            return st_fail(err, STOKER_EUNSUPPORTED,
                           "%s: structured arrays are not supported; save one array per field", where);
        good = take_string(text, descr, sizeof descr);
        if (good) {
            const int rc = read_type(&out->element, descr, where, err);
            if (rc)
                return rc;
        }
    } else if (good && !strcmp(key, "fortran_order")) {
        this = HAS_ORDER;
        st_text_skip_blanks(text);
        if (st_text_take_word(text, "True"))
            return st_fail(err, STOKER_EUNSUPPORTED,
                           "%s: the array is in Fortran order, which scatters its rows; save "
                           "numpy.ascontiguousarray(array) instead",
                           where);
        good = st_text_take_word(text, "False");
    } else if (good && !strcmp(key, "shape")) {
        this = HAS_SHAPE;
        good = take_shape(text, &out->shape);
        if (good && out->shape.ndim > ST_DIMS_MAX + 1)
            return st_fail(err, STOKER_EUNSUPPORTED,
                           "%s: the array has %d dimensions, but at most %d are supported; reshape it "
                           "before saving",
                           where, out->shape.ndim, ST_DIMS_MAX + 1);
    }
    if (!good || !this || *seen & this)
        return st_fail(err, STOKER_ECORRUPT, "%s: invalid npy header", where);
    *seen |= this;
    return 0;
}

static int read_dictionary(struct st_npy *out, struct st_text *text, const char *where,
                           struct stoker_error *err)
{
    unsigned seen = 0;
    bool good = st_text_take(text, '{');
    while (good && !st_text_take(text, '}')) {
        const int rc = read_entry(out, text, &seen, where, err);
        if (rc)
            return rc;
        good = st_text_take(text, ',') || (text->at < text->end && *text->at == '}');
        st_text_skip_blanks(text);
    }
    st_text_skip_blanks(text);
    if (!good || seen != HAS_ALL || text->at != text->end)
        return st_fail(err, STOKER_ECORRUPT, "%s: invalid npy header", where);
    return 0;
}

int st_npy_parse(struct st_npy *out, struct st_bytes head, const char *where, struct stoker_error *err)
{
    *out = (struct st_npy){0};
    if (head.size < 10 || memcmp(head.data, "\x93NUMPY", 6))
        return st_fail(err, STOKER_ECORRUPT, "%s: does not begin like an npy file", where);
    const uint8_t *at = head.data;
    const bool wide = at[6] > 1;
    if (at[6] < 1 || at[6] > 3 || head.size < 12)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "%s: version %u.%u of the npy format is not supported; 1.0 to 3.0 are", where,
                       at[6], at[7]);
    uint64_t size = at[8] | (uint64_t)at[9] << 8;
    if (wide)
        size |= (uint64_t)at[10] << 16 | (uint64_t)at[11] << 24;
    const uint64_t begin = wide ? 12 : 10;
    if (size > head.size - begin)
        return st_fail(err, STOKER_ECORRUPT, "%s: states a header of %llu bytes, but only %llu follow",
                       where, (unsigned long long)size, (unsigned long long)(head.size - begin));
    struct st_text text = {.at = (const char *)at + begin, .end = (const char *)at + begin + size};
    out->offset = begin + size;
    return read_dictionary(out, &text, where, err);
}

int st_npy_check_size(const struct st_npy *npy, uint64_t size, const char *where,
                      struct stoker_error *err)
{
    uint64_t bytes = npy->element.size;
    for (int32_t i = 0; i < npy->shape.ndim; i++)
        if (!st_mul(bytes, npy->shape.sizes[i], &bytes))
            bytes = UINT64_MAX;
    if (npy->offset > size || bytes > size - npy->offset)
        return st_fail(err, STOKER_ECORRUPT,
                       "%s: states %llu bytes of elements, but only %llu follow: it is truncated", where,
                       (unsigned long long)bytes,
                       (unsigned long long)(npy->offset > size ? 0 : size - npy->offset));
    return 0;
}
