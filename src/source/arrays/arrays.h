/* arrays.h - numpy arrays in memory, row by row: shared by the npy and npz sources
 *
 * An array is in the mapped file, or in allocated memory if it had to be decompressed. Nothing is
 * copied: a sample's pieces point to its rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ARRAYS_ARRAYS_H
#define ST_SOURCE_ARRAYS_ARRAYS_H

#include "source/held.h"
#include "source/arrays/rows.h"

struct st_arrays {
    struct st_held file;
    uint64_t mapped_end; /* samples use the mapped file up to here; 0: not at all */
    struct st_field_list requested;
    uint32_t count;
    struct st_rows rows[ST_FIELDS_MAX];
    struct st_field fields[ST_FIELDS_MAX];
    const uint8_t *data[ST_FIELDS_MAX];
    uint8_t *memory[ST_FIELDS_MAX]; /* decompressed arrays, freed on close */
};

/* Adds the array in `npy`, a whole npy file. Takes ownership of `memory` if it is not NULL, also on
 * failure. */
int st_arrays_add(struct st_arrays *arrays, struct st_bytes npy, uint8_t *memory,
                  const struct st_field_request *request, const char *where, struct stoker_error *err);
/* The limit for all decompressed bytes together. */
uint64_t st_arrays_limit(void);

/* The functions of st_source. */
uint64_t st_arrays_count(const void *self);
size_t st_arrays_name(const void *self, uint64_t sample, char *buffer, size_t size);
int st_arrays_locate(const void *self, uint64_t sample, struct st_extent *out, struct stoker_error *err);
const struct st_field *st_arrays_fields(const void *self, uint32_t *count);
int st_arrays_split(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                    struct st_piece *pieces, struct stoker_error *err);
int64_t st_arrays_label(const void *self, uint64_t sample);
void st_arrays_close(void *self);

/* The npy files of a pack as one dataset: row i of each is sample i (set.c). `fields` are file names
 * without their extension; NULL: all. */
struct st_pack;
int st_arrays_open_set(struct stoker_dataset **out, const char *folder, const struct st_pack *manifest,
                       const char *fields, struct stoker_error *err);

#endif
