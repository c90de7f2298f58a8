/* layout.c - determines how the elements of an HDF5 dataset are stored
 *
 * Everything here is called with ST_LOCK_LIBRARIES held.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/layout.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Before 1.14 the library walks over all chunks to find one, so for more than this it is not asked. */
enum { QUERIES_MAX = 8192, FILTER_LZF = 32000 };
#define CHUNK_MAX (1ull << 32)

static const struct {
    uint32_t id;
    enum st_h5_filter own; /* ST_H5_FILTERS: only the library or a plug-in can reverse it */
    const char *name;
} known_filters[] = {
    {H5Z_FILTER_SHUFFLE, ST_H5_SHUFFLE, "shuffle"},
    {H5Z_FILTER_DEFLATE, ST_H5_DEFLATE, "deflate"},
    {FILTER_LZF, ST_H5_LZF, "lzf"},
    {H5Z_FILTER_FLETCHER32, ST_H5_FLETCHER32, "fletcher32"},
    {H5Z_FILTER_SZIP, ST_H5_FILTERS, "szip"},
    {H5Z_FILTER_NBIT, ST_H5_FILTERS, "nbit"},
    {H5Z_FILTER_SCALEOFFSET, ST_H5_FILTERS, "scaleoffset"},
    {305, ST_H5_FILTERS, "lzo"},
    {307, ST_H5_FILTERS, "bzip2"},
    {32001, ST_H5_FILTERS, "blosc"},
    {32004, ST_H5_FILTERS, "lz4"},
    {32008, ST_H5_FILTERS, "bitshuffle"},
    {32013, ST_H5_FILTERS, "zfp"},
    {32015, ST_H5_FILTERS, "zstd"},
    {32017, ST_H5_FILTERS, "sz"},
    {32026, ST_H5_FILTERS, "blosc2"},
};

const char *st_h5_filter_name(uint32_t id)
{
    for (size_t k = 0; k < sizeof known_filters / sizeof *known_filters; k++)
        if (known_filters[k].id == id)
            return known_filters[k].name;
    return "unknown";
}

static enum st_h5_filter own_filter(uint32_t id)
{
    for (size_t k = 0; k < sizeof known_filters / sizeof *known_filters; k++)
        if (known_filters[k].id == id)
            return known_filters[k].own;
    return ST_H5_FILTERS;
}

/* Reads which filters are applied to chunks; returns the reason if not all can be reversed here. */
static const char *read_filters(struct st_h5_array *array, const struct st_h5_layout *layout)
{
    int before = -1;
    array->filtered = layout->filter_count > 0;
    if (layout->filters_unknown)
        return "unsupported filters";
    for (uint32_t i = 0; i < layout->filter_count; i++) {
        const enum st_h5_filter own = own_filter(layout->filters[i]);
        if (own == ST_H5_FILTERS) {
            snprintf(array->filter, sizeof array->filter, "the filter %s",
                     st_h5_filter_name(layout->filters[i]));
            return array->filter;
        }
        if ((int)own <= before || (own == ST_H5_LZF && array->filters[ST_H5_DEFLATE].used))
            return "filters in an unusual order";
        before = (int)own;
        array->filters[own].used =
            own != ST_H5_SHUFFLE || array->unit > 1; /* shuffling single bytes changes nothing */
        array->filters[own].bit = i;
    }
    return NULL;
}

static void add_reported(struct st_h5_array *array, const hsize_t *place, unsigned mask, haddr_t at,
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
static int reported_one(const hsize_t *place, unsigned mask, haddr_t at, hsize_t size, void *array)
{
    add_reported(array, place, mask, at, size);
    return H5_ITER_CONT;
}
#endif

/* Asks the library for the locations of all chunks. */
static bool query_chunks(struct st_h5_array *array, uint64_t count)
{
#if H5_VERSION_GE(1, 14, 0)
    (void)count;
    return H5Dchunk_iter(array->set, H5P_DEFAULT, reported_one, array) >= 0;
#else
    for (uint64_t i = 0; i < count; i++) {
        hsize_t place[H5S_MAX_RANK], size;
        unsigned mask;
        haddr_t at;
        if (H5Dget_chunk_info(array->set, array->space, i, place, &mask, &at, &size) < 0)
            return false;
        add_reported(array, place, mask, at, size);
    }
    return true;
#endif
}

uint64_t st_h5_header_address(int64_t object)
{
#if H5_VERSION_GE(1, 12, 0)
    H5O_info1_t info;
#else
    H5O_info_t info;
#endif
    return H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0 ? UINT64_MAX : info.addr;
}

/* If a dataset can grow only along one dimension other than the first, its chunk array is transposed,
 * and the library (1.10.8, for one) may report transposed coordinates. */
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

/* Returns why chunks cannot be read without the library; NULL if they can. */
static const char *open_chunks(struct st_h5_array *array, const struct st_h5_layout *layout)
{
    struct st_h5_grid *grid = &array->grid;
    hsize_t written = 0;
    array->chunk_bytes = array->unit;
    if (layout->ndim != grid->ndim)
        return "an unknown layout";
    for (int32_t i = 0; i < grid->ndim; i++) {
        grid->chunk[i] = layout->chunk[i];
        if (!st_mul(array->chunk_bytes, grid->chunk[i], &array->chunk_bytes) ||
            array->chunk_bytes > CHUNK_MAX)
            return "very large chunks";
    }
    const char *filter = read_filters(array, layout);
    if (filter)
        return filter;
    if (layout->bare_edges)
        return "unfiltered edge chunks";
    if (!st_h5_grid_init(grid))
        return "very many chunks";
    const uint64_t table = (grid->total ? grid->total : 1) * sizeof *array->chunks;
    array->chunks = malloc(table);
    if (!array->chunks)
        return "very many chunks";
    memset(array->chunks, 0xff, table); /* all unwritten */
    if (layout->tree)
        return NULL; /* st_h5_index fills it */
    if (H5Dget_num_chunks(array->set, array->space, &written) < 0)
        return "very many chunks";
    if (grows_sideways(array))
        return "a chunk index whose order the library may misreport";
    const bool known =
        (H5_VERSION_GE(1, 14, 0) || written <= QUERIES_MAX) && query_chunks(array, written);
    return known ? NULL : "a chunk index that takes long to read";
}

/* Where the elements are, according to the object header. */
static const char *locate(struct st_h5_array *array, const struct st_h5_layout *layout)
{
    if (layout->external)
        return "external files";
    switch (layout->class) {
    case ST_H5_LAYOUT_COMPACT:
    case ST_H5_LAYOUT_CONTIGUOUS:
        array->way = ST_H5_CONTIGUOUS;
        array->at = layout->at;
        return NULL;
    case ST_H5_LAYOUT_CHUNKED:
        array->way = ST_H5_CHUNKED;
        return open_chunks(array, layout);
    default:
        return "a virtual layout";
    }
}

/* The fill value, in stored form like the elements. If it is unknown, only rows that were never written
 * are bad samples. */
static void take_fill(struct st_h5_array *array, struct st_h5_layout *layout)
{
    if (!layout->fill && !layout->fill_unknown) {
        array->fill = st_calloc(array->unit, 1);
    } else if (layout->fill && layout->fill_size == array->unit) {
        array->fill = layout->fill;
        layout->fill = NULL;
    }
}

/* ---- checking ----------------------------------------------------------------------------------- */

/* The first written chunk, or the last if `last` is set; grid.total if there is none. */
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

static void shift_places(struct st_h5_array *array, uint64_t by)
{
    for (uint64_t i = 0; i < array->grid.total; i++)
        if (array->chunks[i].at != ST_H5_UNWRITTEN)
            array->chunks[i].at += by;
}

/* Reads a chunk's stored bytes both with the library and without it, and compares them. */
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
    if (chunk->size > file->size)
        return false;
    uint8_t *both = malloc(2 * (uint64_t)chunk->size + 1);
    const bool same =
        both && H5Dget_chunk_storage_size(array->set, place, &size) >= 0 && size == chunk->size &&
        H5Dread_chunk(array->set, H5P_DEFAULT, place, &mask, both) >= 0 && mask == chunk->mask &&
        !st_held_read(file, chunk->at, both + size, size, NULL) && !memcmp(both, both + size, size);
    free(both);
    return same;
}

/* Compares the stored bytes of the first and last written chunks; stored bytes, because the library's
 * filters and conversions trust their input. Versions of the library differ in whether addresses are
 * relative to the start of the file or to the end of its user block, so both are tried. */
int st_h5_compare_chunks(struct st_h5_array *array, uint64_t base, const struct st_held *file,
                         struct stoker_error *err)
{
    if (array->way != ST_H5_CHUNKED || !array->rows.row_bytes || !array->rows.count)
        return 0;
    for (int attempt = 0; attempt < (base ? 2 : 1); attempt++) {
        if (attempt)
            shift_places(array, base);
        if (same_stored(array, file, written_chunk(array, false)) &&
            same_stored(array, file, written_chunk(array, true)))
            return 0;
    }
    return st_fail(
        err, STOKER_ECORRUPT,
        "%s: %s: its chunks are not where the HDF5 library finds them: the file is damaged or "
        "being written",
        file->path, array->rows.field.name);
}

const char *st_h5_choose_way(struct st_h5_array *array, struct st_h5_layout *layout)
{
    const char *reason = array->reason;
    take_fill(array, layout);
    if (!reason)
        reason = locate(array, layout);
    if (reason)
        array->way = ST_H5_LIBRARY;
    return reason;
}

/* ---- variable-length strings and sequences ------------------------------------------------------ */

/* The library is never asked for an element, because it would follow the reference. */
int st_h5_locate_references(struct st_h5_array *array, uint64_t base, const struct st_held *file,
                            struct st_h5_layout *layout, struct stoker_error *err)
{
    array->base = base;
    take_fill(array, layout);
    const char *reason = locate(array, layout);
    return reason
               ? st_fail(err, STOKER_EUNSUPPORTED,
                         "%s: %s: variable-length strings or sequences with %s are not supported; copy "
                         "the file with h5repack -f NONE",
                         file->path, array->rows.field.name, reason)
               : 0;
}
