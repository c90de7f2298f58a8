/* index.h - finds the chunks of an HDF5 dataset in its file
 *
 * The library can tell this too, but one chunk at a time, searching all of them for each, which takes
 * minutes with many chunks; and it trusts what it finds. So the common index (a B-tree of version 1,
 * used by layout messages of version 1 to 3) is walked here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_INDEX_H
#define ST_SOURCE_HDF5_INDEX_H

#include "source/hdf5/object_header.h"

struct st_h5_chunk {
    uint64_t at;         /* offset in the file, or ST_H5_UNWRITTEN */
    uint32_t size, mask; /* stored bytes; bits of filters that were skipped */
};

struct st_h5_grid {
    int32_t ndim;
    uint64_t dims[ST_DIMS_MAX + 1];  /* of the dataset */
    uint64_t chunk[ST_DIMS_MAX + 1]; /* of one chunk */
    uint64_t count[ST_DIMS_MAX + 1]; /* number of chunks along each dimension */
    uint64_t total;                  /* number of all chunks, which are in C order */
};

/* Counts the chunks; false if there are too many for a table. */
bool st_h5_grid_init(struct st_h5_grid *grid);

/* Walks the chunk tree of a layout that has one, and fills `chunks` (grid->total entries, initially
 * unwritten); if it is NULL, without a grid, the tree is only checked. Addresses are relative to `base`.
 * STOKER_ECORRUPT if the tree, or a chunk's location or size, is invalid: then the library must not use
 * it either. */
int st_h5_index(struct st_h5_chunk *chunks, const struct st_h5_grid *grid, const struct st_held *file,
                uint64_t base, const struct st_h5_layout *layout, struct stoker_error *err);

#endif
