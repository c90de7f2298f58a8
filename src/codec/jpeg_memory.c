/* jpeg_memory.c - libjpeg's memory, allocated from an arena that is reused for all images
 *
 * libjpeg allocates all its memory through a table of functions. Its own functions call malloc for each
 * image; these take memory from an arena that remembers how much was needed. "Virtual" arrays, which
 * hold the coefficients of progressive files and which libjpeg might swap to temporary files, are plain
 * memory here: the pixel limit bounds them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg_memory.h"

#include <string.h>

#include <jerror.h>

/* Defined by the memory manager: libjpeg only passes pointers to it. */
struct jvirt_barray_control {
    struct jvirt_barray_control *next;
    JBLOCKARRAY rows;
    JDIMENSION row_count, blocks_per_row, max_access;
    boolean zeroed;
};

static void *take_from(j_common_ptr cinfo, struct st_arena *arena, uint64_t bytes)
{
    void *piece = st_arena_take(arena, bytes);
    if (!piece)
        ERREXIT1(cinfo, JERR_OUT_OF_MEMORY, 0);
    return piece;
}

static void *take(j_common_ptr cinfo, uint64_t bytes)
{
    struct st_jpeg_memory *memory = cinfo->client_data;
    return take_from(cinfo, &memory->image, bytes);
}

/* libjpeg's permanent pool holds the tables, which outlive the abort between two streams of a file. */
static void *alloc(j_common_ptr cinfo, int pool, size_t bytes)
{
    struct st_jpeg_memory *memory = cinfo->client_data;
    return take_from(cinfo, pool == JPOOL_PERMANENT ? &memory->tables : &memory->image, bytes);
}

/* Rows of `bytes` each, and the list of pointers to them. Rows are aligned to cache lines and fill them,
 * because vector code reads and writes past the valid samples. */
static void **take_rows(j_common_ptr cinfo, uint64_t bytes, JDIMENSION count)
{
    const uint64_t stride = st_align(bytes, ST_CACHE_LINE);
    void **rows = take(cinfo, count * (uint64_t)sizeof *rows);
    uint8_t *first = take(cinfo, stride * count); /* dimensions are 16 bits: no overflow */
    for (JDIMENSION k = 0; k < count; k++)
        rows[k] = first + k * stride;
    return rows;
}

static JSAMPARRAY alloc_sarray(j_common_ptr cinfo, int pool, JDIMENSION samples, JDIMENSION rows)
{
    (void)pool;
    return (JSAMPARRAY)take_rows(cinfo, samples * (uint64_t)sizeof(JSAMPLE), rows);
}

static JBLOCKARRAY alloc_barray(j_common_ptr cinfo, int pool, JDIMENSION blocks, JDIMENSION rows)
{
    (void)pool;
    return (JBLOCKARRAY)take_rows(cinfo, blocks * (uint64_t)sizeof(JBLOCK), rows);
}

/* Used only by colour quantisation and compression. */
static jvirt_sarray_ptr request_virt_sarray(j_common_ptr cinfo, int pool, boolean zero,
                                            JDIMENSION samples, JDIMENSION rows, JDIMENSION max_access)
{
    (void)pool, (void)zero, (void)samples, (void)rows, (void)max_access;
    ERREXIT(cinfo, JERR_NOT_COMPILED);
    return NULL;
}

static jvirt_barray_ptr request_virt_barray(j_common_ptr cinfo, int pool, boolean zero,
                                            JDIMENSION blocks, JDIMENSION rows, JDIMENSION max_access)
{
    struct st_jpeg_memory *memory = cinfo->client_data;
    struct jvirt_barray_control *array = take(cinfo, sizeof *array);
    (void)pool;
    *array = (struct jvirt_barray_control){
        .next = memory->arrays,
        .row_count = rows,
        .blocks_per_row = blocks,
        .max_access = max_access,
        .zeroed = zero,
    };
    memory->arrays = array;
    return array;
}

static void realize_virt_arrays(j_common_ptr cinfo)
{
    struct st_jpeg_memory *memory = cinfo->client_data;
    while (memory->arrays) {
        struct jvirt_barray_control *array = memory->arrays;
        array->rows = alloc_barray(cinfo, JPOOL_IMAGE, array->blocks_per_row, array->row_count);
        const uint64_t stride =
            st_align(array->blocks_per_row * (uint64_t)sizeof(JBLOCK), ST_CACHE_LINE);
        if (array->zeroed && array->row_count)
            memset(array->rows[0], 0, stride * array->row_count);
        memory->arrays = array->next;
    }
}

static JBLOCKARRAY access_virt_barray(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION first,
                                      JDIMENSION rows, boolean writable)
{
    (void)writable;
    if (!array->rows || rows > array->max_access || first > array->row_count ||
        rows > array->row_count - first)
        ERREXIT(cinfo, JERR_BAD_VIRTUAL_ACCESS);
    return array->rows + first;
}

static void free_pool(j_common_ptr cinfo, int pool)
{
    struct st_jpeg_memory *memory = cinfo->client_data;
    if (pool != JPOOL_IMAGE)
        return;
    memory->arrays = NULL;
    st_arena_reset(&memory->image);
}

void st_jpeg_memory_use(struct jpeg_decompress_struct *cinfo, struct st_jpeg_memory *memory)
{
    struct jpeg_memory_mgr *mem = cinfo->mem;
    cinfo->client_data = memory;
    mem->alloc_small = alloc;
    mem->alloc_large = alloc;
    mem->alloc_sarray = alloc_sarray;
    mem->alloc_barray = alloc_barray;
    mem->request_virt_sarray = request_virt_sarray;
    mem->request_virt_barray = request_virt_barray;
    mem->realize_virt_arrays = realize_virt_arrays;
    mem->access_virt_barray = access_virt_barray;
    mem->free_pool = free_pool;
}

void st_jpeg_memory_forget(struct jpeg_decompress_struct *cinfo)
{
    memset(cinfo->quant_tbl_ptrs, 0, sizeof cinfo->quant_tbl_ptrs);
    memset(cinfo->dc_huff_tbl_ptrs, 0, sizeof cinfo->dc_huff_tbl_ptrs);
    memset(cinfo->ac_huff_tbl_ptrs, 0, sizeof cinfo->ac_huff_tbl_ptrs);
    st_arena_reset(&((struct st_jpeg_memory *)cinfo->client_data)->tables);
}

void st_jpeg_memory_free(struct st_jpeg_memory *memory)
{
    st_arena_free(&memory->image);
    st_arena_free(&memory->tables);
}
