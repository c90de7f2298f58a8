/* object_header.h - parses the object header of an HDF5 dataset or group
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_OBJECT_HEADER_H
#define ST_SOURCE_HDF5_OBJECT_HEADER_H

#include "source/held.h"

#define ST_H5_UNWRITTEN UINT64_MAX

enum st_h5_layout_class {
    ST_H5_LAYOUT_COMPACT, /* in the header itself */
    ST_H5_LAYOUT_CONTIGUOUS,
    ST_H5_LAYOUT_CHUNKED,
    ST_H5_LAYOUT_VIRTUAL, /* parts of other datasets */
};
enum {
    ST_H5_REFERENCE = 16, /* size of a variable-length element: its length and its location */
    ST_H5_FILTERS_MAX = 32,
};

struct st_h5_layout {
    enum st_h5_layout_class class;
    /* Offset of the elements or of the root of the chunk tree; ST_H5_UNWRITTEN: not stored yet. */
    uint64_t at;
    uint64_t size; /* of the elements, for COMPACT and CONTIGUOUS */
    bool external; /* the elements are in other files */

    /* For CHUNKED: */
    bool tree; /* the chunk index is a tree of version 1; otherwise their locations are not known */
    int32_t ndim;
    uint64_t chunk[ST_DIMS_MAX + 1];
    uint64_t unit;   /* bytes of an element */
    bool bare_edges; /* chunks that extend past the edge are not filtered */
    uint32_t filter_count, filters[ST_H5_FILTERS_MAX]; /* in the order in which they were applied */
    bool filters_unknown;                              /* there are unsupported ones */

    uint8_t *fill; /* the fill value, `fill_size` bytes; NULL: none stated */
    uint32_t fill_size; /* the caller frees `fill` */
    bool fill_unknown;  /* there is one in an unsupported form */
};

/* Reads the header at `at`, which is relative to `base`, as are all addresses in it. */
int st_h5_layout_read(struct st_h5_layout *out, const struct st_held *file, uint64_t base, uint64_t at,
                      struct stoker_error *err);
/* Checks the header of a dataset or group before the library reads it, since the library follows
 * addresses without checks and reads past the end of messages. `shares`: the file has a table of shared
 * messages. */
int st_h5_object_check(const struct st_held *file, uint64_t base, uint64_t at, bool shares,
                       struct stoker_error *err);

#endif
