/* field_list.h - the fields that a user asks for: "images,labels=int"
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_FIELD_LIST_H
#define ST_SOURCE_FIELD_LIST_H

#include "source/source.h"

struct st_field_wish {
    const char *name;
    bool typed; /* "=kind" stood behind it */
    enum st_field_kind kind;
    int32_t ndim; /* "=f32[3x4]": an array of this type and shape; 0: no shape was given */
    enum stoker_dtype dtype;
    int64_t shape[ST_DIMS_MAX];
};

struct st_field_list {
    char *text; /* the names */
    uint32_t count;
    struct st_field_wish wishes[ST_FIELDS_MAX];
};

/* Names are separated by commas and may hold anything else; blanks around them do not count. Behind the
 * last '=' stands a kind (image, audio, int, float, array, text, json, bytes), or a type of numbers with
 * a shape: u8[28x28] and u8[32x32x3] are pixels, and all others (i8 to u64, f16, f32, f64, bool) arrays.
 * NULL is a list of no fields. */
int st_field_list_parse(struct st_field_list *list, const char *text, struct stoker_error *err);
void st_field_list_free(struct st_field_list *list);
const char *st_field_kind_name(enum st_field_kind kind);
/* The bytes of one number. */
uint32_t st_dtype_size(enum stoker_dtype dtype);
/* "u8", "f32", ... */
const char *st_dtype_name(enum stoker_dtype dtype);
/* And back; false: no type is called so. */
bool st_dtype_named(const char *name, size_t size, enum stoker_dtype *out);
/* uint8 [H, W] or [H, W, C <= 4]: what counts as an image. */
bool st_is_pixels(enum stoker_dtype dtype, int32_t ndim, const int64_t *shape);
/* Bytes that begin as an encoded image does: what is taken for one when nobody said so. */
bool st_looks_like_image(struct st_bytes bytes);

/* Names for a message, separated by commas; "..." where there is no more room. */
struct st_name_list {
    char text[400];
    size_t used;
};
void st_name_list_add(struct st_name_list *list, const char *name, size_t size);

#endif
