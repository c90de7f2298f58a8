/* heap.h - where the strings and sequences of any length of an HDF5 file lie
 *
 * An element of such a data set is a reference: how many elements the sequence has, and an object of a
 * global heap, which is many collections all over the file. The library reads these too, but it trusts
 * what it finds there: a damaged collection ends the process, or never lets it end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_HEAP_H
#define ST_SOURCE_HDF5_HEAP_H

#include "source/hdf5/object_header.h"

struct st_h5_object {
    uint64_t at, size; /* in the file */
};

/* Finds what the reference names: a sequence of elements of `unit` bytes. Addresses count from `base`.
 * An object that lies outside of its collection or of the file, or whose size is not the sequence's, is
 * STOKER_ECORRUPT. Any thread. */
int st_h5_heap_find(struct st_h5_object *out, const struct st_held *file, uint64_t base,
                    const uint8_t reference[ST_H5_REFERENCE], uint32_t unit, struct stoker_error *err);

#endif
