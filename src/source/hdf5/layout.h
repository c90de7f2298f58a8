/* layout.h - what the elements of an HDF5 dataset are, and how they are stored: types.c, layout.c
 *
 * All functions must be called with ST_LOCK_LIBRARIES held.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_LAYOUT_H
#define ST_SOURCE_HDF5_LAYOUT_H

#include "source/hdf5/array.h"

/* Determines where the elements are and how to read them; returns NULL, or why the library is needed. A
 * tree of chunks is left to st_h5_index. */
const char *st_h5_choose_way(struct st_h5_array *array, struct st_h5_layout *layout);
/* The same for variable-length strings and sequences, which are never left to the library. Addresses are
 * relative to `base`. */
int st_h5_locate_references(struct st_h5_array *array, uint64_t base, const struct st_held *file,
                            struct st_h5_layout *layout, struct stoker_error *err);
/* Fails if the chunks are not where the library finds them. */
int st_h5_compare_chunks(struct st_h5_array *array, uint64_t base, const struct st_held *file,
                         struct stoker_error *err);

const char *st_h5_filter_name(uint32_t id);
/* The address of a dataset's or group's header, relative to the end of the user block. */
uint64_t st_h5_header_address(int64_t object);

/* Fills the array's rows from its type and the shape, to which a type of array elements adds dimensions.
 * Numbers in a non-standard format become a type that the library converts to. */
int st_h5_open_type(struct st_h5_array *array, const struct st_held *file,
                    const struct st_field_request *request, struct st_array_shape *shape,
                    struct stoker_error *err);

#endif
