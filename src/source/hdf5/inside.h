/* inside.h - between the files that call the HDF5 library: all with the lock of libraries held
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_INSIDE_H
#define ST_SOURCE_HDF5_INSIDE_H

#include "source/hdf5/array.h"

#include <hdf5.h>

/* Fills the array's rows from its type and the shape, to which a type that is an array adds dimensions.
 * Numbers of an odd kind become ones that the library converts to. */
int st_h5_open_type(struct st_h5_array *array, const struct st_held *file,
                    const struct st_field_wish *wish, struct st_shape *shape, struct stoker_error *err);

/* Finds out where its elements lie, and how to read them: without the library, or why not. What a tree says
 * about its chunks is left to st_h5_index. */
const char *st_h5_choose_way(struct st_h5_array *array, struct st_h5_layout *layout);
const char *st_h5_filter_name(uint32_t id);
/* Of a data set or group: as the library counts addresses, from the end of what stands in front. */
uint64_t st_h5_header_address(int64_t object);

/* The same for strings and sequences of any length, which are never left to the library. */
int st_h5_locate_references(struct st_h5_array *array, const struct st_h5_file *h5,
                            const struct st_held *file, struct st_h5_layout *layout,
                            struct stoker_error *err);

/* Whether chunks are where the library finds them. */
int st_h5_compare_chunks(struct st_h5_array *array, const struct st_h5_file *h5,
                         const struct st_held *file, struct stoker_error *err);

/* One row by the library, into memory of its type. */
int st_h5_read_one(const struct st_h5_array *array, const struct st_held *file, uint64_t row, void *out,
                   struct stoker_error *err);

#endif
