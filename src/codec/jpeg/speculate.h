/* speculate.h - two decoders in a stream that has no restart markers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_SPECULATE_H
#define ST_CODEC_JPEG_SPECULATE_H

#include "codec/jpeg/streams.h"

/* As st_jpeg_scan_band, where the one band is all that is wanted and there is one interval. */
enum st_jpeg_reason st_jpeg_scan_speculate(struct st_jpeg_scan *scan, struct st_arena *arena);

#endif
