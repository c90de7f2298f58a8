/* rows.h - arrays whose first axis counts the samples: what npy, npz and HDF5 files share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ARRAYS_ROWS_H
#define ST_SOURCE_ARRAYS_ROWS_H

#include "source/field_list.h"

/* What a file says about the elements of an array. */
struct st_element {
    char
        type; /* as numpy's kinds: i, u, f, b (bool), S (bytes, padded with zeros), U (UCS-4), V (raw) */
    uint32_t size; /* in bytes */
    bool swapped;  /* not this machine's byte order */
};

struct st_shape {
    int32_t ndim;
    uint64_t sizes[ST_DIMS_MAX + 1]; /* the rows, and the dimensions of a row */
};

struct st_rows {
    struct st_field field;
    struct st_element element;
    bool scalar; /* one number a row */
    uint64_t count, row_bytes;
};

/* What the rows are to a sample: as asked for, else a scalar is a number, uint8 [H, W] and [H, W, C <=
 * 4] are pixels, strings are text, and the rest are arrays. `where` names the array in messages. */
int st_rows_init(struct st_rows *rows, const struct st_element *element, const struct st_shape *shape,
                 const struct st_field_wish *wish, const char *where, struct stoker_error *err);

/* Makes pieces of rows that lie at `at`, in this machine's byte order and in UTF-8. Any thread. */
int st_rows_split(const struct st_rows *rows, uint32_t count, const uint8_t *const *at,
                  struct st_buffer *scratch, struct st_piece *pieces, struct stoker_error *err);

#endif
