/* progressive.h - the coefficients of a region of a progressive file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_PROGRESSIVE_H
#define ST_CODEC_JPEG_PROGRESSIVE_H

#include "codec/jpeg/grids.h"
#include "codec/jpeg/streams.h"

/* Reads all scans of the file, beginning with the one that `frame` has; `scan` says what is needed. */
enum st_jpeg_reason st_jpeg_progressive(const struct st_jpeg_scan *scan, struct st_jpeg_frame *frame,
                                        struct st_jpeg_tables *tables, struct st_arena *arena,
                                        struct st_jpeg_grid grids[ST_JPEG_COMPONENTS_MAX]);

#endif
