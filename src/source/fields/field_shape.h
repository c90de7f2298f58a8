/* field_shape.h - fields with a shape after their type: "label=int,box=float[4],mask=u8[?x224]"
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_FIELDS_FIELD_SHAPE_H
#define ST_SOURCE_FIELDS_FIELD_SHAPE_H

#include "source/fields/field_list.h"

/* "[2x4]" or, equivalently, "[2,4]"; "[]" is one axis of any length, and "?" marks an axis of any
 * length. At most one axis may have any length. */
struct st_field_shape {
    bool given;
    bool raw; /* the type was a dtype (u8, f32, ...): elements as in memory; the request's kind is ARRAY
               */
    enum stoker_dtype dtype;
    int32_t ndim;
    int64_t shape[ST_DIMS_MAX]; /* -1: any */
};

/* Like st_field_list_parse; shapes[i] belongs to request i. */
int st_field_shapes_parse(struct st_field_list *list, struct st_field_shape shapes[ST_FIELDS_MAX],
                          const char *text, struct stoker_error *err);
/* Fills in the axis of any length; false if `count` elements do not fit the shape. */
bool st_field_shape_fit(const struct st_field_shape *shape, uint64_t count, int64_t out[ST_DIMS_MAX]);

#endif
