/* rows.h - arrays whose first axis is the samples: shared by npy, npz and HDF5
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ARRAYS_ROWS_H
#define ST_SOURCE_ARRAYS_ROWS_H

#include "source/fields/field_list.h"

/* The elements of an array, as described by the file. */
struct st_element {
    char type;     /* numpy's kind: i, u, f, b (bool), S (bytes, zero-padded), U (UCS-4), V (raw) */
    uint32_t size; /* in bytes */
    bool swapped;  /* in the other byte order than this machine's */
};

struct st_array_shape {
    int32_t ndim;
    uint64_t sizes[ST_DIMS_MAX + 1]; /* the number of rows, then the dimensions of a row */
};

struct st_rows {
    struct st_field field;
    struct st_element element;
    bool scalar; /* one number per row */
    uint64_t count, row_bytes;
};

/* Determines the field: as requested, otherwise a scalar is a number, uint8 [H, W] and [H, W, C <= 4]
 * are pixels, strings are text, and the rest are arrays. `where` names the array in messages. */
int st_rows_init(struct st_rows *rows, const struct st_element *element,
                 const struct st_array_shape *shape, const struct st_field_request *request,
                 const char *where, struct stoker_error *err);

/* Converts the rows at `at` to pieces, in this machine's byte order and in UTF-8. Any thread. */
int st_rows_split(const struct st_rows *rows, uint32_t count, const uint8_t *const *at,
                  struct st_buffer *scratch, struct st_piece *pieces, struct stoker_error *err);

#endif
