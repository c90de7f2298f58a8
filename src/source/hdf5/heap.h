/* heap.h - finds variable-length strings and sequences of an HDF5 file
 *
 * An element of such a dataset is a reference: the number of elements of the sequence, and an object in
 * a global heap, which consists of collections all over the file. The library reads these too, but
 * trusts what it finds: a damaged collection crashes or hangs the process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_HEAP_H
#define ST_SOURCE_HDF5_HEAP_H

#include "source/hdf5/object_header.h"

struct st_h5_object {
    uint64_t at, size; /* offset in the file, and size */
};

/* Finds the object of a reference: a sequence of elements of `unit` bytes. Addresses are relative to
 * `base`. STOKER_ECORRUPT if the object is outside its collection or the file, or if its size is wrong.
 * Any thread. */
int st_h5_heap_find(struct st_h5_object *out, const struct st_held *file, uint64_t base,
                    const uint8_t reference[ST_H5_REFERENCE], uint32_t unit, struct stoker_error *err);

#endif
