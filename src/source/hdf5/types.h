/* types.h - converts types of HDF5 elements to fields
 *
 * Must be called with ST_LOCK_LIBRARIES held.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_TYPES_H
#define ST_SOURCE_HDF5_TYPES_H

#include "source/hdf5/array.h"

/* Fills the array's rows from its type and the shape, to which a type of array elements adds dimensions.
 * Numbers in a non-standard format become a type that the library converts to. */
int st_h5_open_type(struct st_h5_array *array, const struct st_held *file,
                    const struct st_field_request *request, struct st_array_shape *shape,
                    struct stoker_error *err);

#endif
