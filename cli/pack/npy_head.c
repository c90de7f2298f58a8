/* npy_head.c - the header of a .npy file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include <stdio.h>
#include <string.h>

static const char *numpy_type(enum stoker_dtype dtype)
{
    static const char *const names[] = {
        [STOKER_DTYPE_U8] = "|u1",   [STOKER_DTYPE_F32] = "<f4", [STOKER_DTYPE_F16] = "<f2",
        [STOKER_DTYPE_BF16] = "<V2", [STOKER_DTYPE_I64] = "<i8", [STOKER_DTYPE_I8] = "|i1",
        [STOKER_DTYPE_I16] = "<i2",  [STOKER_DTYPE_I32] = "<i4", [STOKER_DTYPE_U16] = "<u2",
        [STOKER_DTYPE_U32] = "<u4",  [STOKER_DTYPE_U64] = "<u8", [STOKER_DTYPE_F64] = "<f8",
        [STOKER_DTYPE_BOOL] = "|b1"};
    return names[dtype];
}

void pack_npy_header(char *out, uint64_t size, const struct st_piece *piece, uint64_t rows)
{
    memset(out, ' ', size);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((size - 10) & 255);
    out[9] = (char)((size - 10) >> 8);
    char shape[200] = "";
    int used = 0;
    if (rows != UINT64_MAX)
        used += snprintf(shape, sizeof shape, "%llu,", (unsigned long long)rows);
    for (int32_t i = 0; i < piece->ndim; i++)
        used += snprintf(shape + used, sizeof shape - (size_t)used, "%lld,", (long long)piece->shape[i]);
    char text[256];
    const int length =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                 numpy_type(piece->dtype), shape);
    memcpy(out + 10, text, (size_t)length < size - 11 ? (size_t)length : size - 11);
    out[size - 1] = '\n';
}
