/* field_shape.c - fields with a shape after their type
 *
 * The shapes are cut out of the text; what remains is parsed as an ordinary field list.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/fields/field_shape.h"

#include <stdlib.h>
#include <string.h>

/* One axis: a number, or "?" or nothing for any length. */
static bool take_axis(const char **at, int64_t *out)
{
    const char *p = *at;
    int64_t value = 0;
    *out = -1;
    if (*p == '?') {
        *at = p + 1;
        return true;
    }
    if (*p == ']')
        return true;
    for (; *p >= '0' && *p <= '9'; p++) {
        value = value * 10 + (*p - '0');
        if (value > INT32_MAX)
            return false;
    }
    *out = value;
    const bool some = p > *at;
    *at = p;
    return some;
}

/* Parses "[2x?]" and moves *at past it. */
static bool take_shape(const char **at, struct st_field_shape *out)
{
    int any = 0;
    out->given = true;
    do {
        ++*at;
        if (out->ndim == ST_DIMS_MAX || !take_axis(at, &out->shape[out->ndim]))
            return false;
        any += out->shape[out->ndim++] < 0;
    } while (**at == ',' || **at == 'x');
    return *(*at)++ == ']' && any <= 1;
}

/* Copies one field's text without its shape, replacing a dtype by "array". */
static bool copy_plain(const char **at, char **to, struct st_field_shape *shape)
{
    const char *p = *at;
    while (*p && *p != ',' && *p != '[') {
        *(*to)++ = *p;
        if (*p++ != '=')
            continue;
        const size_t word = strcspn(p, ",[= ");
        if (word && st_dtype_named(p, word, &shape->dtype)) {
            shape->raw = true;
            *to = stpcpy(*to, "array");
            p += word;
        }
    }
    if (*p == '[' && !take_shape(&p, shape))
        return false;
    *at = p;
    return *p == '\0' || *p == ',';
}

static int refuse(const char *text, struct stoker_error *err)
{
    return st_fail(
        err, STOKER_EINVAL,
        "fields=%.300s: expected name=type, where the type may end in a shape such as int[3], "
        "float[2x4], u8[?x32] or float[], with at most one axis of any length",
        text);
}

int st_field_shapes_parse(struct st_field_list *list, struct st_field_shape shapes[ST_FIELDS_MAX],
                          const char *text, struct stoker_error *err)
{
    *list = (struct st_field_list){0};
    memset(shapes, 0, ST_FIELDS_MAX * sizeof *shapes);
    if (!text)
        return st_field_list_parse(list, NULL, err);
    char *plain = st_calloc(strlen(text) * 4 + 1, 1), *to = plain; /* "u8" becomes "array" */
    if (!plain)
        return st_fail(err, STOKER_ENOMEM, "fields: out of memory");
    int rc = 0;
    const char *at = text;
    for (uint32_t i = 0; !rc; i++) {
        struct st_field_shape beyond = {0};
        if (!copy_plain(&at, &to, i < ST_FIELDS_MAX ? &shapes[i] : &beyond))
            rc = refuse(text, err);
        if (*at == '\0')
            break;
        *to++ = *at++;
    }
    if (!rc)
        rc = st_field_list_parse(list, plain, err);
    for (uint32_t i = 0; i < list->count && !rc; i++)
        if ((shapes[i].given && !list->items[i].typed) || (shapes[i].raw && !shapes[i].given))
            rc = refuse(text, err);
    free(plain);
    return rc;
}

bool st_field_shape_fit(const struct st_field_shape *shape, uint64_t count, int64_t out[ST_DIMS_MAX])
{
    uint64_t known = 1;
    int32_t any = -1;
    for (int32_t i = 0; i < shape->ndim; i++) {
        out[i] = shape->shape[i];
        if (out[i] < 0)
            any = i;
        else if (!st_mul(known, (uint64_t)out[i], &known))
            return false;
    }
    if (any < 0)
        return known == count;
    if (known == 0 || count % known)
        return false;
    out[any] = (int64_t)(count / known);
    return true;
}
