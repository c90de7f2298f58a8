/* speculate.h - two decoders in a stream without restart markers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_SPECULATE_H
#define ST_CODEC_JPEG_SPECULATE_H

#include "codec/jpeg/streams.h"

/* As st_jpeg_scan_band, for scans with a single band and a single interval. */
enum st_jpeg_reason st_jpeg_scan_speculate(struct st_jpeg_scan *scan, struct st_arena *arena);

#endif
