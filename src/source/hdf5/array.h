/* array.h - one data set of an HDF5 file, and how its rows are read
 *
 * The library is asked once, when the file is opened: for the type, the shape, the filters and where
 * everything lies. From then on rows are read without it and without its lock, by any number of threads;
 * all but those of filters and types that only the library knows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_ARRAY_H
#define ST_SOURCE_HDF5_ARRAY_H

#include "source/hdf5/chunk_cache.h"
#include "source/hdf5/heap.h"
#include "source/hdf5/index.h"
#include "source/arrays/rows.h"

enum st_h5_way {
    ST_H5_CONTIGUOUS, /* rows one after another in the file, or in the object header */
    ST_H5_CHUNKED,
    ST_H5_LIBRARY, /* each row through the library */
};

/* Undone here, from the last to the first; a data set with others, or in another order, is read by the
 * library. */
enum st_h5_filter { ST_H5_SHUFFLE, ST_H5_DEFLATE, ST_H5_LZF, ST_H5_FLETCHER32, ST_H5_FILTERS };

struct st_h5_array {
    struct st_rows rows; /* of a variable length: those of references, and the field and elements of what
                            they name */
    bool variable;       /* strings or sequences of any length */
    uint64_t base;       /* what addresses in references count from */
    enum st_h5_way way;
    const char *reason; /* why through the library */
    char filter[40];    /* the filter that only it knows */
    uint32_t unit;      /* bytes of one element of the data set */
    uint8_t *fill;      /* what stands where nothing was written: one element; NULL: it is not known */
    struct st_h5_grid grid;

    uint64_t at; /* CONTIGUOUS: ST_H5_UNWRITTEN: nowhere */

    struct st_h5_chunk *chunks;
    uint64_t chunk_bytes;
    bool filtered;
    struct {
        bool used;
        uint32_t bit; /* of a chunk's mask: set where the filter was left out */
    } filters[ST_H5_FILTERS];
    uint64_t cache_from; /* the number of the first chunk, in the file's cache */

    int64_t set, type, space; /* the library's handles: LIBRARY */
};

/* Reads a row into `out`, of rows.row_bytes. Any thread, any process after a fork. */
int st_h5_read_row(const struct st_h5_array *array, const struct st_held *file,
                   struct st_chunk_cache *cache, uint64_t row, uint8_t *out, struct stoker_error *err);
/* Where a row of a variable length lies. As above. */
int st_h5_find_variable(const struct st_h5_array *array, const struct st_held *file,
                        struct st_chunk_cache *cache, uint64_t row, struct st_h5_object *out,
                        struct stoker_error *err);

/* ---- with the library: takes its lock ----------------------------------------------------------- */

struct st_h5_file {
    int64_t id;    /* the library's handle, 0: closed */
    uint64_t base; /* bytes in front of the file's own */
    bool shares;   /* object headers may refer to messages elsewhere */
};

int st_h5_file_open(struct st_h5_file *h5, const struct st_held *file, struct stoker_error *err);
/* Names of the data sets with rows at the file's root, separated by commas; the caller frees them. */
int st_h5_file_list(const struct st_h5_file *h5, const struct st_held *file, char **out,
                    struct stoker_error *err);
int st_h5_array_open(struct st_h5_array *array, const struct st_h5_file *h5, const struct st_held *file,
                     const struct st_field_wish *wish, struct stoker_error *err);
int st_h5_read_library(const struct st_h5_array *array, const struct st_held *file, uint64_t row,
                       uint8_t *out, struct stoker_error *err);
void st_h5_array_close(struct st_h5_array *array);
void st_h5_file_close(struct st_h5_file *h5);

#endif
