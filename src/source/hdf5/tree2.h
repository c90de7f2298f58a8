/* tree2.h - walks a B-tree of version 2 of an HDF5 file: of a group's links, or of chunks
 *
 * The library trusts what it finds in these too.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_TREE2_H
#define ST_SOURCE_HDF5_TREE2_H

#include "source/held.h"

enum {
    ST_H5_TREE2_LINK_NAMES = 5,
    ST_H5_TREE2_LINK_ORDER = 6,
    ST_H5_TREE2_CHUNKS = 10,
    ST_H5_TREE2_FILTERED_CHUNKS = 11,
}; /* the values in headers */

/* Called for a record of `size` bytes of a tree of this kind, at offset `at` of the file. */
typedef int st_h5_record(void *context, uint32_t kind, const uint8_t *record, uint32_t size, uint64_t at,
                         struct stoker_error *err);

/* The header is at this address, which is relative to `base`. STOKER_ECORRUPT if the tree is invalid; no
 * node is read twice. */
int st_h5_tree2_walk(const struct st_held *file, uint64_t base, uint64_t address, st_h5_record *visit,
                     void *context, struct stoker_error *err);

#endif
