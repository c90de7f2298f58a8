/* chunks.c - reads rows of an HDF5 dataset, without the library where possible
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/array.h"
#include "source/hdf5/chunk_cache.h"
#include "source/hdf5/filters.h"
#include "source/hdf5/heap.h"
#include "source/hdf5/library.h"
#include "source/deflate/inflate.h"
#include "source/little.h"

#include <stdlib.h>
#include <string.h>

/* ---- filters ------------------------------------------------------------------------------------ */

static int out_of_memory(const struct st_held *file, uint64_t bytes, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "%s: out of memory for a chunk of %llu bytes", file->path,
                   (unsigned long long)bytes);
}

static int damaged(const struct st_h5_array *array, const struct st_held *file, uint64_t chunk,
                   const char *what, struct stoker_error *err)
{
    return st_fail(err, STOKER_ECORRUPT, "%s: %s: chunk %llu at byte %llu %s", file->path,
                   array->rows.field.name, (unsigned long long)chunk,
                   (unsigned long long)array->chunks[chunk].at, what);
}

/* Whether this filter was applied to the chunk. */
static bool applies(const struct st_h5_array *array, uint64_t chunk, enum st_h5_filter filter)
{
    return array->filters[filter].used && !(array->chunks[chunk].mask >> array->filters[filter].bit & 1);
}

static bool unpack(const struct st_h5_array *array, uint64_t chunk, struct st_bytes packed, uint8_t *out)
{
    return applies(array, chunk, ST_H5_DEFLATE)
               ? st_inflate(ST_WRAPPING_ZLIB, packed, out, array->chunk_bytes)
               : st_h5_unlzf(packed, out, array->chunk_bytes);
}

/* Decodes stored bytes to the chunk; `between` has room for a chunk if it is both shuffled and
 * compressed. */
static int undo_filters(const struct st_h5_array *array, const struct st_held *file, uint64_t chunk,
                        struct st_bytes stored, uint8_t *between, uint8_t *out, struct stoker_error *err)
{
    const bool packed = applies(array, chunk, ST_H5_DEFLATE) || applies(array, chunk, ST_H5_LZF);
    const bool shuffled = applies(array, chunk, ST_H5_SHUFFLE);
    if (applies(array, chunk, ST_H5_FLETCHER32)) {
        if (stored.size < 4 ||
            st_h5_fletcher32(stored.data, stored.size - 4) != st_u32(stored.data + stored.size - 4))
            return damaged(array, file, chunk, "is damaged: its checksum is wrong", err);
        stored.size -= 4;
    }
    if (packed) {
        uint8_t *unpacked = shuffled ? between : out;
        if (!unpack(array, chunk, stored, unpacked))
            return damaged(array, file, chunk, "is damaged: it cannot be decompressed", err);
        stored = (struct st_bytes){unpacked, array->chunk_bytes};
    }
    if (stored.size != array->chunk_bytes)
        return damaged(array, file, chunk, "has the wrong size", err);
    if (shuffled)
        st_h5_unshuffle(out, stored.data, array->chunk_bytes, array->unit);
    else if (stored.data != out)
        memcpy(out, stored.data, array->chunk_bytes);
    return 0;
}

/* Whether the stored bytes can be the chunk; checked before memory of the size stated by the layout is
 * allocated. */
static int check_place(const struct st_h5_array *array, const struct st_held *file, uint64_t chunk,
                       struct stoker_error *err)
{
    const struct st_h5_chunk *place = &array->chunks[chunk];
    if (place->at > file->size || place->size > file->size - place->at)
        return damaged(array, file, chunk, "is outside the file", err);
    if (!array->filtered && place->size != array->chunk_bytes)
        return damaged(array, file, chunk, "has the wrong size", err);
    if (!st_inflate_possible(place->size, array->chunk_bytes)) /* LZF compresses less than deflate */
        return damaged(array, file, chunk, "is damaged: it is too small for its uncompressed size", err);
    return 0;
}

/* Decodes one chunk that was written and passed check_place. */
static int decode(const struct st_h5_array *array, const struct st_held *file, uint64_t chunk,
                  uint8_t *out, struct stoker_error *err)
{
    const struct st_h5_chunk *place = &array->chunks[chunk];
    if (!array->filtered)
        return st_held_read(file, place->at, out, place->size, err);
    const uint64_t after = st_align(place->size, 64);
    const uint64_t more = array->filters[ST_H5_SHUFFLE].used ? array->chunk_bytes : 0;
    uint8_t *stored = malloc(after + more + 64);
    if (!stored)
        return out_of_memory(file, array->chunk_bytes, err);
    int rc = st_held_read(file, place->at, stored, place->size, err);
    if (!rc)
        rc = undo_filters(array, file, chunk, (struct st_bytes){stored, place->size}, stored + after,
                          out, err);
    free(stored);
    return rc;
}

/* ---- rows --------------------------------------------------------------------------------------- */

struct decoder {
    const struct st_h5_array *array;
    const struct st_held *file;
};

static int load_chunk(const void *context, uint64_t number, uint8_t *out, struct stoker_error *err)
{
    const struct decoder *decoder = context;
    return decode(decoder->array, decoder->file, number - decoder->array->cache_from, out, err);
}

/* Copies the intersection of the row and the chunk at `place` (its coordinates along the dimensions of a
 * row). Trailing dimensions that the chunk covers completely are merged into one piece, so that pixels
 * are not copied one by one. */
static void copy_part(const struct st_h5_array *array, const uint64_t *place, const uint8_t *slab,
                      uint8_t *out)
{
    const struct st_h5_grid *grid = &array->grid;
    int32_t last = grid->ndim - 1;
    uint64_t piece = array->unit;
    uint64_t at[ST_DIMS_MAX + 1] = {0}, extent[ST_DIMS_MAX + 1];
    while (last >= 1 && grid->chunk[last] == grid->dims[last])
        piece *= grid->dims[last--];
    for (int32_t i = 1; i <= last; i++) {
        const uint64_t left = grid->dims[i] - place[i] * grid->chunk[i];
        extent[i] = left < grid->chunk[i] ? left : grid->chunk[i];
    }
    for (;;) {
        uint64_t from = 0, to = 0;
        for (int32_t i = 1; i <= last; i++) {
            from = from * grid->chunk[i] + at[i];
            to = to * grid->dims[i] + place[i] * grid->chunk[i] + at[i];
        }
        memcpy(out + to * piece, slab + from * piece, (last ? extent[last] : 1) * piece);
        int32_t i = last - 1;
        while (i >= 1 && ++at[i] == extent[i])
            at[i--] = 0;
        if (i < 1)
            return;
    }
}

static int copy_chunk(const struct decoder *decoder, struct st_chunk_cache *cache, uint64_t row,
                      uint64_t number, const uint64_t *place, uint8_t *out, struct stoker_error *err)
{
    const struct st_h5_array *array = decoder->array;
    const uint64_t within = row % array->grid.chunk[0], slab = array->chunk_bytes / array->grid.chunk[0];
    struct st_cached_chunk *cached;
    const int rc = st_chunk_cache_get(cache, array->cache_from + number, array->chunk_bytes, load_chunk,
                                      decoder, &cached, err);
    if (rc)
        return rc;
    copy_part(array, place, st_cached_chunk_bytes(cached) + within * slab, out);
    st_chunk_cache_put(cache, cached);
    return 0;
}

static int fill_row(const struct st_h5_array *array, const struct st_held *file, uint8_t *out,
                    struct stoker_error *err)
{
    if (!array->fill)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "%s: %s: this row was never written, and its fill value cannot be read without "
                       "the HDF5 library",
                       file->path, array->rows.field.name);
    for (uint64_t at = 0; at < array->rows.row_bytes; at += array->unit)
        memcpy(out + at, array->fill, array->unit);
    return 0;
}

/* Fills only the row, since the stated chunk size may be huge. */
static int fill_unwritten(const struct st_h5_array *array, const struct st_held *file, uint64_t first,
                          uint64_t across, uint8_t *out, struct stoker_error *err)
{
    for (uint64_t k = 0; k < across; k++)
        if (array->chunks[first + k].at == ST_H5_UNWRITTEN)
            return fill_row(array, file, out, err);
    return 0;
}

static int read_chunked(const struct st_h5_array *array, const struct st_held *file,
                        struct st_chunk_cache *cache, uint64_t row, uint8_t *out,
                        struct stoker_error *err)
{
    const struct st_h5_grid *grid = &array->grid;
    const struct decoder decoder = {array, file};
    uint64_t across = 1, place[ST_DIMS_MAX + 1] = {0};
    for (int32_t i = 1; i < grid->ndim; i++)
        across *= grid->count[i];
    const uint64_t first = row / grid->chunk[0] * across;
    int rc = fill_unwritten(array, file, first, across, out, err);
    if (rc)
        return rc;
    for (uint64_t k = 0; k < across && !rc; k++)
        if (array->chunks[first + k].at != ST_H5_UNWRITTEN)
            rc = check_place(array, file, first + k, err);
    if (rc)
        return rc;
    if (grid->chunk[0] == 1 && array->chunk_bytes == array->rows.row_bytes && across == 1 &&
        array->chunks[first].at != ST_H5_UNWRITTEN)
        return decode(array, file, first, out, err); /* the chunk is the row */
    for (uint64_t k = 0; k < across; k++) {
        uint64_t left = k;
        for (int32_t i = grid->ndim - 1; i >= 1; i--) {
            place[i] = left % grid->count[i];
            left /= grid->count[i];
        }
        if (array->chunks[first + k].at != ST_H5_UNWRITTEN)
            rc = copy_chunk(&decoder, cache, row, first + k, place, out, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* Computes the offset of a row of the contiguous layout; false if no file can be that large. */
static bool row_place(const struct st_h5_array *array, uint64_t row, uint64_t *out)
{
    return st_mul(row, array->rows.row_bytes, out) && st_add(*out, array->at, out) && *out <= INT64_MAX;
}

int st_h5_read_row(const struct st_h5_array *array, const struct st_held *file,
                   struct st_chunk_cache *cache, uint64_t row, uint8_t *out, struct stoker_error *err)
{
    const uint64_t bytes = array->rows.row_bytes;
    uint64_t at;
    switch (array->way) {
    case ST_H5_CONTIGUOUS:
        if (array->at == ST_H5_UNWRITTEN)
            return fill_row(array, file, out, err);
        return row_place(array, row, &at)
                   ? st_held_read(file, at, out, bytes, err)
                   : st_fail(err, STOKER_ECORRUPT, "%s: %s: is outside the file", file->path,
                             array->rows.field.name);
    case ST_H5_CHUNKED:
        return bytes ? read_chunked(array, file, cache, row, out, err) : 0;
    case ST_H5_LIBRARY:
        break;
    }
    return st_h5_read_library(array, file, row, out, err);
}

int st_h5_find_variable(const struct st_h5_array *array, const struct st_held *file,
                        struct st_chunk_cache *cache, uint64_t row, struct st_h5_object *out,
                        struct stoker_error *err)
{
    uint8_t reference[ST_H5_REFERENCE];
    int rc = st_h5_read_row(array, file, cache, row, reference, err);
    if (!rc &&
        (rc = st_h5_heap_find(out, file, array->base, reference, array->rows.element.size, err)) != 0)
        st_fail_in(err, rc, array->rows.field.name);
    return rc;
}
