/* index.h - where the chunks of an HDF5 data set lie in its file
 *
 * The library tells this too, but one chunk at a time, and searches all of them for each: with many
 * chunks that takes minutes; and it trusts what it finds. So the common index (a B-tree of version 1,
 * behind a layout message of version 1 to 3) is walked here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_INDEX_H
#define ST_SOURCE_HDF5_INDEX_H

#include "source/hdf5/object_header.h"

struct st_h5_chunk {
    uint64_t at;         /* in the file, or ST_H5_UNWRITTEN */
    uint32_t size, mask; /* bytes as stored; filters that were left out */
};

struct st_h5_grid {
    int32_t ndim;
    uint64_t dims[ST_DIMS_MAX + 1];  /* of the data set */
    uint64_t chunk[ST_DIMS_MAX + 1]; /* of one chunk */
    uint64_t count[ST_DIMS_MAX + 1]; /* chunks along each dimension */
    uint64_t total;                  /* chunks in all: their number is in C order */
};

/* Counts the chunks; false when they are too many for a table. */
bool st_h5_grid_init(struct st_h5_grid *grid);

/* Walks the tree of chunks of a layout that has one, and fills `chunks` (grid->total of them, unwritten
 * before); with NULL and no grid it is only checked. Addresses count from `base`. STOKER_ECORRUPT where
 * the tree, or a chunk's place or size, cannot be: then the library may not be asked either. */
int st_h5_index(struct st_h5_chunk *chunks, const struct st_h5_grid *grid, const struct st_held *file,
                uint64_t base, const struct st_h5_layout *layout, struct stoker_error *err);

#endif
