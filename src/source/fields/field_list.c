/* field_list.c - the fields that the user requests: "images,labels=int"
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/fields/field_list.h"
#include "source/little.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
    [ST_FIELD_IMAGE] = "image", [ST_FIELD_AUDIO] = "audio", [ST_FIELD_INT] = "int",
    [ST_FIELD_FLOAT] = "float", [ST_FIELD_ARRAY] = "array", [ST_FIELD_TEXT] = "text",
    [ST_FIELD_JSON] = "json",   [ST_FIELD_BYTES] = "bytes",
};
static const struct {
    const char *name;
    uint32_t size;
} dtypes[] = {
    [STOKER_DTYPE_U8] = {"u8", 1},     [STOKER_DTYPE_F32] = {"f32", 4}, [STOKER_DTYPE_F16] = {"f16", 2},
    [STOKER_DTYPE_BF16] = {"bf16", 2}, [STOKER_DTYPE_I64] = {"i64", 8}, [STOKER_DTYPE_I8] = {"i8", 1},
    [STOKER_DTYPE_I16] = {"i16", 2},   [STOKER_DTYPE_I32] = {"i32", 4}, [STOKER_DTYPE_U16] = {"u16", 2},
    [STOKER_DTYPE_U32] = {"u32", 4},   [STOKER_DTYPE_U64] = {"u64", 8}, [STOKER_DTYPE_F64] = {"f64", 8},
    [STOKER_DTYPE_BOOL] = {"bool", 1},
};
static const unsigned kind_count = sizeof kind_names / sizeof *kind_names;
static const unsigned dtype_count = sizeof dtypes / sizeof *dtypes;
enum { CHANNELS_MAX = 4 };

uint32_t st_dtype_size(enum stoker_dtype dtype) { return dtypes[dtype].size; }

const char *st_dtype_name(enum stoker_dtype dtype) { return dtypes[dtype].name; }

bool st_dtype_named(const char *name, size_t size, enum stoker_dtype *out)
{
    for (unsigned dtype = 0; dtype < dtype_count; dtype++)
        if (!strncmp(name, dtypes[dtype].name, size) && !dtypes[dtype].name[size]) {
            *out = (enum stoker_dtype)dtype;
            return true;
        }
    return false;
}

bool st_is_pixels(enum stoker_dtype dtype, int32_t ndim, const int64_t *shape)
{
    return dtype == STOKER_DTYPE_U8 &&
           (ndim == 2 || (ndim == 3 && shape[2] >= 1 && shape[2] <= CHANNELS_MAX));
}

bool st_looks_like_image(struct st_bytes bytes)
{
    static const struct {
        const char *magic;
        size_t size;
    } known[] = {{"\xff\xd8\xff", 3}, {"\x89PNG\r\n", 6}, {"II*\0", 4}, {"MM\0*", 4}};
    const uint8_t *data = bytes.data;
    if (bytes.size <= 18)
        return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!memcmp(data, known[i].magic, known[i].size))
            return true;
    const uint32_t head = st_u32(data + 14); /* of a BMP: the size of its second header */
    return (!memcmp(data, "RIFF", 4) && !memcmp(data + 8, "WEBP", 4)) ||
           (!memcmp(data, "BM", 2) && (head == 12 || (head >= 40 && head <= 124)));
}

const char *st_field_kind_name(enum st_field_kind kind) { return kind_names[kind]; }

static char *without_blanks(char *from, char *end)
{
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
    return from;
}

/* "f32[3x4]" */
static bool parse_shape(struct st_field_request *request, const char *type)
{
    const size_t size = strcspn(type, "[");
    if (!type[size] || !st_dtype_named(type, size, &request->dtype))
        return false;
    const char *at = type + size;
    do {
        char *end;
        const char *digits = at + 1;
        if (request->ndim == ST_DIMS_MAX || *digits < '0' || *digits > '9')
            return false;
        request->shape[request->ndim] = strtoll(digits, &end, 10);
        if (request->shape[request->ndim++] > UINT32_MAX)
            return false;
        at = end;
    } while (*at == 'x');
    request->kind =
        st_is_pixels(request->dtype, request->ndim, request->shape) ? ST_FIELD_IMAGE : ST_FIELD_ARRAY;
    return at[0] == ']' && !at[1];
}

static bool parse_type(struct st_field_request *request, const char *type)
{
    unsigned kind = 0;
    while (kind < kind_count && strcmp(type, kind_names[kind]))
        kind++;
    if (kind == kind_count)
        return parse_shape(request, type);
    request->kind = (enum st_field_kind)kind;
    return true;
}

static int parse_one(struct st_field_request *request, char *from, char *end, const char *text,
                     struct stoker_error *err)
{
    *request = (struct st_field_request){.name = without_blanks(from, end)};
    char *equals = strrchr(request->name, '=');
    if (equals) {
        char *const behind = equals + strlen(equals);
        const char *kind = without_blanks(equals + 1, behind);
        request->name = without_blanks((char *)(uintptr_t)request->name, equals);
        if (!parse_type(request, kind))
            return st_fail(
                err, STOKER_EINVAL,
                "fields=%.300s: unknown type %.100s; allowed are image, audio, int, float, array, text, "
                "json, bytes, and dtypes with a shape such as u8[32x32x3] or f32[10]",
                text, kind);
        request->typed = true;
    }
    return request->name[0] ? 0
                         : st_fail(err, STOKER_EINVAL, "fields=%.300s: contains an empty name", text);
}

static int check_duplicates(const struct st_field_list *list, const char *text, struct stoker_error *err)
{
    for (uint32_t i = 1; i < list->count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!strcmp(list->items[i].name, list->items[k].name))
                return st_fail(err, STOKER_EINVAL, "fields=%.300s: %.200s is listed twice", text,
                               list->items[i].name);
    return 0;
}

int st_field_list_parse(struct st_field_list *list, const char *text, struct stoker_error *err)
{
    *list = (struct st_field_list){0};
    if (!text)
        return 0;
    list->text = strdup(text);
    if (!list->text)
        return st_fail(err, STOKER_ENOMEM, "fields: out of memory");
    for (char *from = list->text, *end; from; from = end) {
        char *const comma = strchrnul(from, ',');
        end = *comma ? comma + 1 : NULL;
        if (list->count == ST_FIELDS_MAX)
            return st_fail(
                err, STOKER_ELIMIT,
                "fields=%.300s: more than %d fields; combine related numbers into one array", text,
                ST_FIELDS_MAX);
        const int rc = parse_one(&list->items[list->count++], from, comma, text, err);
        if (rc)
            return rc;
    }
    return check_duplicates(list, text, err);
}

void st_field_list_free(struct st_field_list *list)
{
    free(list->text);
    *list = (struct st_field_list){0};
}

void st_name_list_add(struct st_name_list *list, const char *name, size_t size)
{
    enum { DOTS = 5 };
    const size_t comma = list->used ? 2 : 0;
    if (list->used + comma + size + DOTS >= sizeof list->text) {
        if (list->used + DOTS < sizeof list->text)
            memcpy(list->text + list->used, comma ? ", ..." : "...", comma ? 6 : 4);
        list->used = sizeof list->text;
        return;
    }
    memcpy(list->text + list->used, ", ", comma);
    list->used += comma;
    for (size_t i = 0; i < size; i++) /* keep control characters from reaching a terminal */
        list->text[list->used++] = (unsigned char)name[i] < ' ' || name[i] == 127 ? '?' : name[i];
    list->text[list->used] = '\0';
}
