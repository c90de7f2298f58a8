/* array.h - one dataset of an HDF5 file
 *
 * The library is used once, when the file is opened: for the type, the shape, the filters and where
 * everything is. After that rows are read without it and without its lock, by any number of threads,
 * except those with filters or types that only the library supports.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_ARRAY_H
#define ST_SOURCE_HDF5_ARRAY_H

#include "source/arrays/rows.h"
#include "source/hdf5/index.h"

enum st_h5_way {
    ST_H5_CONTIGUOUS, /* rows one after another in the file, or in the object header */
    ST_H5_CHUNKED,
    ST_H5_LIBRARY, /* each row is read by the library */
};

/* Filters that are reversed here, from the last to the first; a dataset with others, or in another
 * order, is read by the library. */
enum st_h5_filter { ST_H5_SHUFFLE, ST_H5_DEFLATE, ST_H5_LZF, ST_H5_FLETCHER32, ST_H5_FILTERS };

struct st_h5_array {
    struct st_rows rows; /* if `variable`: rows of references; field and element of their targets */
    bool variable;       /* variable-length strings or sequences */
    uint64_t base;       /* addresses in references are relative to this */
    enum st_h5_way way;
    const char *reason; /* why it is read by the library */
    char filter[40];    /* the filter that only the library supports */
    uint32_t unit;      /* bytes of one element of the dataset */
    uint8_t *fill;      /* the fill value, one element; NULL: not known */
    struct st_h5_grid grid;

    uint64_t at; /* CONTIGUOUS: offset of the rows, or ST_H5_UNWRITTEN */

    struct st_h5_chunk *chunks;
    uint64_t chunk_bytes;
    bool filtered;
    struct {
        bool used;
        uint32_t bit; /* in a chunk's mask; set if the filter was skipped */
    } filters[ST_H5_FILTERS];
    uint64_t cache_from; /* the number of the first chunk in the file's cache */

    int64_t set, type, space; /* LIBRARY: the library's handles */
};

/* ---- hdf5/chunks.c ---- */

struct st_chunk_cache;
struct st_h5_object;

/* Reads a row into `out`, of rows.row_bytes. Any thread, and any process after a fork. */
int st_h5_read_row(const struct st_h5_array *array, const struct st_held *file,
                   struct st_chunk_cache *cache, uint64_t row, uint8_t *out, struct stoker_error *err);
/* Finds where a variable-length row is. As above. */
int st_h5_find_variable(const struct st_h5_array *array, const struct st_held *file,
                        struct st_chunk_cache *cache, uint64_t row, struct st_h5_object *out,
                        struct stoker_error *err);

#endif
