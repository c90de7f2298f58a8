/* datum.h - Caffe's Datum: an image with a label, as a protocol buffer
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LMDB_DATUM_H
#define ST_SOURCE_LMDB_DATUM_H

#include "base/pixels.h"

#include <stdbool.h>

struct st_datum {
    int32_t channels, height, width;
    int64_t label;
    bool encoded; /* data is an image file; else channels * height * width bytes, plane after plane */
    bool floats;  /* it holds floats instead of bytes */
    struct st_bytes data;
};

/* Reads a message without copying; false when it is none, or a raw one whose sizes do not agree. */
bool st_datum_parse(struct st_datum *out, struct st_bytes message);

#endif
