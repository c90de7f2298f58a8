/* layout.c - how the elements of an HDF5 data set lie in its file
 *
 * All of it with the lock of libraries.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/inside.h"

#include <stdlib.h>
#include <string.h>

/* Asking for one chunk takes the library a walk over all: more than this are not asked for. */
enum { ASKED_MAX = 8192, FILTERS_MAX = 32, FILTER_LZF = 32000 };
#define CHUNK_MAX (1ull << 32)

/* The name of a filter that is not undone here; NULL for the four that are. */
static const char *known_filter(H5Z_filter_t id, enum st_h5_filter *out)
{
    static const struct {
        H5Z_filter_t id;
        enum st_h5_filter own;
        const char *name;
    } known[] = {{H5Z_FILTER_SHUFFLE, ST_H5_SHUFFLE, NULL},
                 {H5Z_FILTER_DEFLATE, ST_H5_DEFLATE, NULL},
                 {FILTER_LZF, ST_H5_LZF, NULL},
                 {H5Z_FILTER_FLETCHER32, ST_H5_FLETCHER32, NULL},
                 {H5Z_FILTER_SZIP, ST_H5_FILTERS, "the filter szip"},
                 {H5Z_FILTER_NBIT, ST_H5_FILTERS, "the filter nbit"},
                 {H5Z_FILTER_SCALEOFFSET, ST_H5_FILTERS, "the filter scaleoffset"},
                 {32001, ST_H5_FILTERS, "the filter blosc"},
                 {32004, ST_H5_FILTERS, "the filter lz4"},
                 {32008, ST_H5_FILTERS, "the filter bitshuffle"},
                 {32015, ST_H5_FILTERS, "the filter zstd"},
                 {32026, ST_H5_FILTERS, "the filter blosc2"}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (known[k].id == id) {
            *out = known[k].own;
            return known[k].name;
        }
    return "a filter";
}

/* Which filters chunks go through; the reason where not all are undone here. */
static const char *read_filters(struct st_h5_array *array, hid_t plist)
{
    const int count = H5Pget_nfilters(plist);
    if (count > FILTERS_MAX || count < 0)
        return "many filters";
    array->filtered = count > 0;
    int before = -1;
    for (int i = 0; i < count; i++) {
        unsigned flags, config;
        size_t values = 0;
        enum st_h5_filter own = ST_H5_FILTERS;
        const H5Z_filter_t id =
            H5Pget_filter2(plist, (unsigned)i, &flags, &values, NULL, 0, NULL, &config);
        const char *other = known_filter(id, &own);
        if (other)
            return other;
        if ((int)own <= before || (own == ST_H5_LZF && array->filters[ST_H5_DEFLATE].used))
            return "filters in an unusual order";
        before = (int)own;
        array->filters[own].used =
            own != ST_H5_SHUFFLE || array->unit > 1; /* single bytes stay where they are */
        array->filters[own].bit = (uint32_t)i;
    }
    return NULL;
}

static void add_asked(struct st_h5_array *array, const hsize_t *place, unsigned mask, haddr_t at,
                      hsize_t size)
{
    const struct st_h5_grid *grid = &array->grid;
    uint64_t number = 0;
    for (int32_t i = 0; i < grid->ndim; i++) {
        if (place[i] / grid->chunk[i] >= grid->count[i])
            return;
        number = number * grid->count[i] + place[i] / grid->chunk[i];
    }
    if (at != HADDR_UNDEF && size <= UINT32_MAX)
        array->chunks[number] = (struct st_h5_chunk){at, (uint32_t)size, mask};
}

#if H5_VERSION_GE(1, 14, 0)
static int asked_one(const hsize_t *place, unsigned mask, haddr_t at, hsize_t size, void *array)
{
    add_asked(array, place, mask, at, size);
    return H5_ITER_CONT;
}
#endif

/* Asks the library for the places of all chunks. */
static bool ask_for_chunks(struct st_h5_array *array, uint64_t count)
{
#if H5_VERSION_GE(1, 14, 0)
    (void)count;
    return H5Dchunk_iter(array->set, H5P_DEFAULT, asked_one, array) >= 0;
#else
    for (uint64_t i = 0; i < count; i++) {
        hsize_t place[H5S_MAX_RANK], size;
        unsigned mask;
        haddr_t at;
        if (H5Dget_chunk_info(array->set, array->space, i, place, &mask, &at, &size) < 0)
            return false;
        add_asked(array, place, mask, at, size);
    }
    return true;
#endif
}

static uint64_t header_address(hid_t set)
{
#if H5_VERSION_GE(1, 12, 0)
    H5O_info1_t info;
#else
    H5O_info_t info;
#endif
    return H5Oget_info2(set, &info, H5O_INFO_BASIC) < 0 ? UINT64_MAX : info.addr;
}

/* A data set that can grow along one dimension, not the first, has its chunks in an array that is
 * turned, and the library (1.10.8 does) may name them by turned coordinates. */
static bool grows_sideways(const struct st_h5_array *array)
{
    hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK];
    int growing = 0;
    if (H5Sget_simple_extent_dims(array->space, dims, most) < 0)
        return true;
    for (int32_t i = 0; i < array->grid.ndim; i++)
        growing += most[i] == H5S_UNLIMITED;
    return growing == 1 && most[0] != H5S_UNLIMITED;
}

/* Why chunks cannot be read without the library; NULL when they can. */
static const char *open_chunks(struct st_h5_array *array, const struct st_h5_file *h5,
                               const struct st_held *file, hid_t plist)
{
    struct st_h5_grid *grid = &array->grid;
    hsize_t chunk[H5S_MAX_RANK], written = 0;
    unsigned options = 0;
    if (H5Pget_chunk(plist, H5S_MAX_RANK, chunk) != grid->ndim)
        return "a layout that is not known";
    array->chunk_bytes = array->unit;
    for (int32_t i = 0; i < grid->ndim; i++) {
        grid->chunk[i] = chunk[i];
        if (!st_mul(array->chunk_bytes, chunk[i], &array->chunk_bytes) || array->chunk_bytes > CHUNK_MAX)
            return "very large chunks";
    }
    const char *filter = read_filters(array, plist);
    if (filter)
        return filter;
    if (H5Pget_chunk_opts(plist, &options) >= 0 && options)
        return "chunks at the edge without filters";
    if (!st_h5_grid_init(grid) || H5Dget_num_chunks(array->set, array->space, &written) < 0)
        return "very many chunks";
    const uint64_t table = (grid->total ? grid->total : 1) * sizeof *array->chunks;
    array->chunks = malloc(table);
    if (!array->chunks)
        return "very many chunks";
    memset(array->chunks, 0xff, table); /* all unwritten */
    uint64_t found = 0;
    const int rc =
        st_h5_index(array->chunks, grid, file, h5->base, header_address(array->set), &found, NULL);
    if (!rc && found == written)
        return NULL;
    memset(array->chunks, 0xff, table);
    if (grows_sideways(array))
        return "an index of chunks whose order the library does not tell rightly";
    const bool asked =
        (H5_VERSION_GE(1, 14, 0) || written <= ASKED_MAX) && ask_for_chunks(array, written);
    return asked ? NULL : "an index of chunks that takes long to read";
}

/* Everything into memory: what lies in the object header is small. */
static const char *open_compact(struct st_h5_array *array)
{
    const uint64_t bytes = array->rows.count * array->rows.row_bytes;
    array->memory = malloc(bytes ? bytes : 1);
    if (!array->memory || bytes > 1 << 20 ||
        H5Dread(array->set, array->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array->memory) < 0)
        return "a compact layout";
    array->way = ST_H5_MEMORY;
    return NULL;
}

static const char *choose_way(struct st_h5_array *array, const struct st_h5_file *h5,
                              const struct st_held *file, hid_t plist)
{
    if (array->reason)
        return array->reason;
    array->fill = st_calloc(array->unit, 1);
    if (!array->fill || H5Pget_fill_value(plist, array->type, array->fill) < 0)
        return "a fill value that cannot be read";
    switch (H5Pget_layout(plist)) {
    case H5D_COMPACT:
        return open_compact(array);
    case H5D_CONTIGUOUS: {
        if (H5Pget_external_count(plist) != 0)
            return "files beside this one";
        const haddr_t at = H5Dget_offset(array->set);
        array->at = at == HADDR_UNDEF ? ST_H5_UNWRITTEN : at;
        array->way = ST_H5_CONTIGUOUS;
        return NULL;
    }
    case H5D_CHUNKED:
        array->way = ST_H5_CHUNKED;
        return open_chunks(array, h5, file, plist);
    default:
        return "a virtual layout";
    }
}

/* ---- is it so? ---------------------------------------------------------------------------------- */

/* The first chunk that was written, or with `last` the last; grid.total when none was. */
static uint64_t written_chunk(const struct st_h5_array *array, bool last)
{
    const uint64_t total = array->grid.total;
    for (uint64_t k = 0; k < total; k++) {
        const uint64_t chunk = last ? total - 1 - k : k;
        if (array->chunks[chunk].at != ST_H5_UNWRITTEN)
            return chunk;
    }
    return total;
}

static uint64_t written_row(const struct st_h5_array *array, bool last)
{
    uint64_t across = 1;
    const uint64_t chunk = array->way == ST_H5_CHUNKED ? written_chunk(array, last) : 0;
    for (int32_t i = 1; i < array->grid.ndim && array->way == ST_H5_CHUNKED; i++)
        across *= array->grid.count[i];
    if (array->way != ST_H5_CHUNKED)
        return last ? array->rows.count - 1 : 0;
    return chunk == array->grid.total ? 0 : chunk / across * array->grid.chunk[0];
}

static void shift_places(struct st_h5_array *array, uint64_t by)
{
    if (array->at != ST_H5_UNWRITTEN)
        array->at += by;
    for (uint64_t i = 0; array->chunks && i < array->grid.total; i++)
        if (array->chunks[i].at != ST_H5_UNWRITTEN)
            array->chunks[i].at += by;
}

/* A row, read both ways. */
static bool same_row(const struct st_h5_array *array, const struct st_held *file, uint64_t row)
{
    const uint64_t bytes = array->rows.row_bytes;
    uint8_t *both = malloc(2 * bytes);
    struct st_chunk_cache *cache = st_chunk_cache_open(0);
    const bool same = both && cache && !st_h5_read_one(array, file, row, both, NULL) &&
                      !st_h5_read_row(array, file, cache, row, both + bytes, NULL) &&
                      !memcmp(both, both + bytes, bytes);
    st_chunk_cache_close(cache);
    free(both);
    return same;
}

/* A chunk as it is stored, read both ways: where the library lacks the filter. */
static bool same_stored(const struct st_h5_array *array, const struct st_held *file, uint64_t number)
{
    if (number == array->grid.total)
        return true;
    const struct st_h5_chunk *chunk = &array->chunks[number];
    hsize_t place[H5S_MAX_RANK], size = 0;
    uint32_t mask = 0;
    for (int32_t i = array->grid.ndim - 1; i >= 0; i--) {
        place[i] = number % array->grid.count[i] * array->grid.chunk[i];
        number /= array->grid.count[i];
    }
    uint8_t *both = malloc(2 * (uint64_t)chunk->size + 1);
    const bool same =
        both && H5Dget_chunk_storage_size(array->set, place, &size) >= 0 && size == chunk->size &&
        H5Dread_chunk(array->set, H5P_DEFAULT, place, &mask, both) >= 0 && mask == chunk->mask &&
        !st_held_read(file, chunk->at, both + size, size, NULL) && !memcmp(both, both + size, size);
    free(both);
    return same;
}

/* The first and the last that was written are read both ways. Versions of the library differ in whether
 * addresses count from the file's beginning or from behind what stands in front of it, so that both are
 * tried. */
static const char *compare_ways(struct st_h5_array *array, const struct st_h5_file *h5,
                                const struct st_held *file)
{
    const bool stored = array->filters[ST_H5_LZF].used && !H5Zfilter_avail(FILTER_LZF);
    if (!array->rows.row_bytes || !array->rows.count || array->way == ST_H5_MEMORY ||
        array->way == ST_H5_LIBRARY)
        return NULL;
    for (int attempt = 0; attempt < (h5->base ? 2 : 1); attempt++) {
        if (attempt)
            shift_places(array, h5->base);
        if (stored ? same_stored(array, file, written_chunk(array, false)) &&
                         same_stored(array, file, written_chunk(array, true))
                   : same_row(array, file, written_row(array, false)) &&
                         same_row(array, file, written_row(array, true)))
            return NULL;
    }
    return "the library reads it otherwise";
}

const char *st_h5_choose_way(struct st_h5_array *array, const struct st_h5_file *h5,
                             const struct st_held *file, int64_t plist)
{
    const char *reason = choose_way(array, h5, file, plist);
    if (!reason)
        reason = compare_ways(array, h5, file);
    if (reason)
        array->way = ST_H5_LIBRARY;
    return reason;
}
