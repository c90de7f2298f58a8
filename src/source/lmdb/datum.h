/* datum.h - parses Caffe's Datum, a protocol buffer with an image and a label
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
    bool encoded; /* data is an image file; otherwise channels * height * width bytes, plane by plane */
    bool floats;  /* it contains floats instead of bytes */
    struct st_bytes data;
};

/* Parses a message without copying; false if it is not a Datum, or a raw one whose sizes are
 * inconsistent. */
bool st_datum_parse(struct st_datum *out, struct st_bytes message);

#endif
