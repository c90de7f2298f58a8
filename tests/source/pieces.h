/* pieces.h - a dataset in words: one line for each piece of each sample, with a checksum of its bytes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_PIECES_H
#define ST_TESTS_PIECES_H

#include "source/reader/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

static inline const char *piece_dtype(enum stoker_dtype dtype)
{
    static const char *const names[] = {
        [STOKER_DTYPE_U8] = "uint8",      [STOKER_DTYPE_F32] = "float32", [STOKER_DTYPE_F16] = "float16",
        [STOKER_DTYPE_BF16] = "bfloat16", [STOKER_DTYPE_I64] = "int64",   [STOKER_DTYPE_I8] = "int8",
        [STOKER_DTYPE_I16] = "int16",     [STOKER_DTYPE_I32] = "int32",   [STOKER_DTYPE_U16] = "uint16",
        [STOKER_DTYPE_U32] = "uint32",    [STOKER_DTYPE_U64] = "uint64",  [STOKER_DTYPE_F64] = "float64",
        [STOKER_DTYPE_BOOL] = "bool",
    };
    return names[dtype];
}

static inline void piece_print(FILE *out, const struct st_field *field, const struct st_piece *piece)
{
    static const char *const kinds[] = {"image", "audio", "int",  "float",
                                        "array", "text",  "json", "bytes"};
    uint64_t bits;
    memcpy(&bits, &piece->real, sizeof bits);
    fprintf(out, "%s %s", field->name, kinds[field->kind]);
    if (field->kind == ST_FIELD_INT) {
        fprintf(out, " %" PRId64 "\n", piece->whole);
        return;
    }
    if (field->kind == ST_FIELD_FLOAT) {
        fprintf(out, " %016" PRIx64 "\n", bits);
        return;
    }
    if (field->kind == ST_FIELD_ARRAY || (field->kind == ST_FIELD_IMAGE && piece->ndim)) {
        fprintf(out, " %s", piece_dtype(piece->dtype));
        for (int32_t i = 0; i < piece->ndim; i++)
            fprintf(out, "%s%" PRId64, i ? "x" : " ", piece->shape[i]);
    }
    fprintf(out, " %zu %08lx\n", piece->bytes.size,
            piece->bytes.size ? crc32(0, piece->bytes.data, (unsigned)piece->bytes.size) : 0ul);
}

/* One sample; false, with the error in words, when it cannot be read. */
static inline bool sample_print(FILE *out, struct stoker_dataset *data, uint64_t sample)
{
    struct st_buffer buffer = {0}, scratch = {0};
    struct st_bytes raw;
    struct st_piece pieces[ST_FIELDS_MAX];
    struct stoker_error err = {0};
    uint32_t count;
    const struct st_field *fields = data->source->fields(data->self, &count);
    int rc = st_read_sample(data, sample, &buffer, &raw, &err);
    if (!rc)
        rc = data->source->split(data->self, sample, raw, &scratch, pieces, &err);
    fprintf(out, "sample %" PRIu64 "\n", sample);
    for (uint32_t k = 0; k < count && !rc; k++)
        piece_print(out, &fields[k], &pieces[k]);
    if (rc)
        fprintf(out, "error %d %s\n", rc, err.message);
    st_buffer_free(&buffer);
    st_buffer_free(&scratch);
    return !rc;
}

static inline void dataset_print(FILE *out, struct stoker_dataset *data)
{
    fprintf(out, "count %" PRIu64 "\n", st_dataset_count(data));
    const uint32_t classes = data->source->class_count ? data->source->class_count(data->self) : 0;
    for (uint32_t i = 0; i < classes; i++)
        fprintf(out, "class %s\n", data->source->class_name(data->self, i));
    const char *note = data->source->note ? data->source->note(data->self) : NULL;
    if (note)
        fprintf(out, "note %s\n", note);
    for (uint64_t i = 0; i < st_dataset_count(data); i++)
        sample_print(out, data, i);
}

#endif
