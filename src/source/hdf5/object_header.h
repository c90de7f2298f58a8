/* object_header.h - what the object header of an HDF5 data set says about where its elements lie
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
    ST_H5_LAYOUT_VIRTUAL, /* parts of other data sets */
};
enum {
    ST_H5_REFERENCE = 16, /* bytes of an element of any length: how long it is, and where */
    ST_H5_FILTERS_MAX = 32,
};

struct st_h5_layout {
    enum st_h5_layout_class class;
    /* In the file: the elements, or the root of the tree of chunks; ST_H5_UNWRITTEN: nowhere yet. */
    uint64_t at;
    uint64_t size; /* of the elements: COMPACT, CONTIGUOUS */
    bool external; /* they lie in other files */

    /* CHUNKED: */
    bool tree; /* the index of the chunks is a tree of version 1; else nothing is said about where they
                  lie */
    int32_t ndim;
    uint64_t chunk[ST_DIMS_MAX + 1];
    uint64_t unit;   /* bytes of an element */
    bool bare_edges; /* chunks that reach beyond the edge went through no filter */
    uint32_t filter_count, filters[ST_H5_FILTERS_MAX]; /* in the order in which they were applied */
    bool filters_unknown;                              /* there are others */

    uint8_t *fill; /* what stands where nothing was written, `fill_size` bytes; NULL: nothing was said */
    uint32_t fill_size; /* the caller frees `fill` */
    bool fill_unknown;  /* something was said that is not understood here */
};

/* Reads the header at `at`; this and all addresses in it count from `base`. */
int st_h5_layout_read(struct st_h5_layout *out, const struct st_held *file, uint64_t base, uint64_t at,
                      struct stoker_error *err);
/* Whether the header of a data set or group can be left to the library, which follows addresses to
 * wherever they lead and reads behind the end of messages. `shares`: the file has a table of messages
 * that headers share. */
int st_h5_object_check(const struct st_held *file, uint64_t base, uint64_t at, bool shares,
                       struct stoker_error *err);

#endif
