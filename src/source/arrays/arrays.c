/* arrays.c - numpy arrays in memory, row by row: shared by the npy and npz sources
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/arrays/arrays.h"
#include "source/arrays/npy_header.h"

#include "base/cpu.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Rows of at least this size are read in one request, not page by page as they are touched. */
enum { LARGE_ROW = 128 * 1024 };

uint64_t st_arrays_limit(void) { return st_memory_limit() / 2; }

int st_arrays_add(struct st_arrays *arrays, struct st_bytes npy, uint8_t *memory,
                  const struct st_field_request *request, const char *where, struct stoker_error *err)
{
    struct st_npy header;
    const uint32_t k = arrays->count;
    struct st_rows *rows = &arrays->rows[k];
    arrays->memory[k] = memory;
    arrays->count++;
    int rc = st_npy_parse(&header,
                          (struct st_bytes){npy.data, npy.size < ST_NPY_HEAD ? npy.size : ST_NPY_HEAD},
                          where, err);
    if (!rc)
        rc = st_npy_check_size(&header, npy.size, where, err);
    if (!rc)
        rc = st_rows_init(rows, &header.element, &header.shape, request, where, err);
    if (rc)
        return rc;
    arrays->data[k] = npy.data + header.offset;
    arrays->fields[k] = rows->field;
    if (!memory) {
        const uint64_t end =
            (uint64_t)(npy.data - arrays->file.map) + header.offset + rows->count * rows->row_bytes;
        arrays->mapped_end = end > arrays->mapped_end ? end : arrays->mapped_end;
    }
    if (rows->count != arrays->rows[0].count)
        return st_fail(err, STOKER_EINVAL,
                       "%s: has %llu row%s, but %s has %llu; all fields must have the same number",
                       where, (unsigned long long)rows->count, st_s(rows->count), arrays->fields[0].name,
                       (unsigned long long)arrays->rows[0].count);
    return 0;
}

uint64_t st_arrays_count(const void *self) { return ((const struct st_arrays *)self)->rows[0].count; }

size_t st_arrays_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    const struct st_arrays *arrays = self;
    const int length =
        snprintf(buffer, size, "%s: row %llu", arrays->file.path, (unsigned long long)sample);
    return length > 0 ? (size_t)length : 0;
}

static const uint8_t *row_of(const struct st_arrays *arrays, uint32_t field, uint64_t sample)
{
    return arrays->data[field] + sample * arrays->rows[field].row_bytes;
}

/* Reads a whole row from disk in one request; if the kernel cannot (before 5.14), pages are read when
 * touched. */
static void read_ahead(const uint8_t *row, uint64_t size)
{
#ifdef MADV_POPULATE_READ
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = (uintptr_t)row / page * page;
    madvise((void *)from, (uintptr_t)row + size - from, MADV_POPULATE_READ);
#else
    (void)row, (void)size;
#endif
}

int st_arrays_locate(const void *self, uint64_t sample, struct st_extent *out, struct stoker_error *err)
{
    const struct st_arrays *arrays = self;
    const int rc = arrays->mapped_end ? st_held_check(&arrays->file, arrays->mapped_end, err) : 0;
    if (rc)
        return rc;
    for (uint32_t k = 0; k < arrays->count; k++)
        if (!arrays->memory[k] && arrays->rows[k].row_bytes >= LARGE_ROW)
            read_ahead(row_of(arrays, k, sample), arrays->rows[k].row_bytes);
    out->memory = row_of(arrays, 0, sample);
    out->offset = 0;
    out->length = arrays->rows[0].row_bytes;
    return 0;
}

const struct st_field *st_arrays_fields(const void *self, uint32_t *count)
{
    const struct st_arrays *arrays = self;
    *count = arrays->count;
    return arrays->fields;
}

/* All rows are already in memory, so `raw`, the first field's row, is not needed. */
int st_arrays_split(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                    struct st_piece *pieces, struct stoker_error *err)
{
    const struct st_arrays *arrays = self;
    const uint8_t *at[ST_FIELDS_MAX];
    (void)raw;
    for (uint32_t k = 0; k < arrays->count; k++)
        at[k] = row_of(arrays, k, sample);
    const int rc = st_rows_split(arrays->rows, arrays->count, at, scratch, pieces, err);
    if (rc) {
        char name[700];
        st_arrays_name(self, sample, name, sizeof name);
        st_fail_in(err, rc, name);
    }
    return rc;
}

/* The first integer field. */
int64_t st_arrays_label(const void *self, uint64_t sample)
{
    const struct st_arrays *arrays = self;
    struct st_buffer unused = {0};
    struct st_piece piece;
    for (uint32_t k = 0; k < arrays->count; k++) {
        const uint8_t *at = row_of(arrays, k, sample);
        if (arrays->fields[k].kind == ST_FIELD_INT &&
            (!arrays->mapped_end || !st_held_check(&arrays->file, arrays->mapped_end, NULL)) &&
            !st_rows_split(&arrays->rows[k], 1, &at, &unused, &piece, NULL))
            return piece.whole;
    }
    return 0;
}

void st_arrays_close(void *self)
{
    struct st_arrays *arrays = self;
    for (uint32_t k = 0; k < arrays->count; k++)
        free(arrays->memory[k]);
    st_field_list_free(&arrays->requested);
    st_held_close(&arrays->file);
}
