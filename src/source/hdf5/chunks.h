/* chunks.h - reads rows of an HDF5 dataset, without the library where possible
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_CHUNKS_H
#define ST_SOURCE_HDF5_CHUNKS_H

#include "source/hdf5/array.h"
#include "source/hdf5/chunk_cache.h"
#include "source/hdf5/heap.h"

/* Reads a row into `out`, of rows.row_bytes. Any thread, and any process after a fork. */
int st_h5_read_row(const struct st_h5_array *array, const struct st_held *file,
                   struct st_chunk_cache *cache, uint64_t row, uint8_t *out, struct stoker_error *err);
/* Finds where a variable-length row is. As above. */
int st_h5_find_variable(const struct st_h5_array *array, const struct st_held *file,
                        struct st_chunk_cache *cache, uint64_t row, struct st_h5_object *out,
                        struct stoker_error *err);

#endif
