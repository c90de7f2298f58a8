/* field_list.h - the fields that the user requests: "images,labels=int"
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_FIELDS_FIELD_LIST_H
#define ST_SOURCE_FIELDS_FIELD_LIST_H

#include "source/source.h"

struct st_field_request {
    const char *name;
    bool typed; /* "=kind" was given */
    enum st_field_kind kind;
    int32_t ndim; /* "=f32[3x4]": an array of this type and shape; 0: no shape was given */
    enum stoker_dtype dtype;
    int64_t shape[ST_DIMS_MAX];
};

struct st_field_list {
    char *text; /* the names */
    uint32_t count;
    struct st_field_request items[ST_FIELDS_MAX];
};

/* Names are separated by commas and may contain anything else; surrounding blanks are ignored. After the
 * last '=' comes a kind (image, audio, int, float, array, text, json, bytes) or a dtype with a shape:
 * u8[28x28] and u8[32x32x3] are pixels, all others (i8 to u64, f16, f32, f64, bool) are arrays. NULL
 * gives an empty list. */
int st_field_list_parse(struct st_field_list *list, const char *text, struct stoker_error *err);
void st_field_list_free(struct st_field_list *list);
const char *st_field_kind_name(enum st_field_kind kind);
/* Bytes per element. */
uint32_t st_dtype_size(enum stoker_dtype dtype);
/* "u8", "f32", ... */
const char *st_dtype_name(enum stoker_dtype dtype);
/* The reverse; false: there is no dtype of that name. */
bool st_dtype_named(const char *name, size_t size, enum stoker_dtype *out);
/* Whether an array counts as an image: uint8 [H, W] or [H, W, C <= 4]. */
bool st_is_pixels(enum stoker_dtype dtype, int32_t ndim, const int64_t *shape);
/* Whether the bytes begin like an encoded image; decides the kind when the user gave none. */
bool st_looks_like_image(struct st_bytes bytes);

/* Names for a message, separated by commas, ending in "..." if they do not all fit. */
struct st_name_list {
    char text[400];
    size_t used;
};
void st_name_list_add(struct st_name_list *list, const char *name, size_t size);

#endif
