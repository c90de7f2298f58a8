/* npy_header.h - parses the header of numpy's npy format
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ARRAYS_NPY_HEADER_H
#define ST_SOURCE_ARRAYS_NPY_HEADER_H

#include "source/arrays/rows.h"

struct st_npy {
    struct st_element element;
    struct st_array_shape shape;
    uint64_t offset; /* where the elements begin */
};

/* Longer headers are not read: numpy itself rejects more than 10,000 characters. */
enum { ST_NPY_HEAD = 64 * 1024 };

/* Parses the header at the beginning of `head`, which is ST_NPY_HEAD bytes or the whole file. Object
 * arrays (pickles), structured arrays and Fortran order are rejected. `where` names the array in
 * messages. */
int st_npy_parse(struct st_npy *out, struct st_bytes head, const char *where, struct stoker_error *err);
/* Fails if `size` bytes, header included, are too few for all elements. */
int st_npy_check_size(const struct st_npy *npy, uint64_t size, const char *where,
                      struct stoker_error *err);

#endif
