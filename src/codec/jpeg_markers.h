/* jpeg_markers.h - what a JPEG says of itself before its first scan
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_MARKERS_H
#define ST_CODEC_JPEG_MARKERS_H

#include "base/err.h"
#include "base/pixels.h"

struct st_jpeg_info {
    uint32_t width, height;
    uint32_t components;  /* 1, 3 or 4 */
    uint32_t orientation; /* EXIF, 1 to 8 */
    uint8_t frame;        /* the marker of the frame: 0xC0 baseline, 0xC2 progressive, ... */
};

bool st_jpeg_probe(const uint8_t *data, size_t size);

/* Walks the markers up to the first scan, by the rules of Pillow's own walk, so that what Pillow refuses
 * to open is refused here as well. */
int st_jpeg_markers(struct st_bytes in, struct st_jpeg_info *out, struct stoker_error *err);

/* Whether the image's data, which begins behind the header of its first scan, comes to its end marker. It is
 * looked for from the back, so that in whole files it is found at once; what stands behind it is of no
 * account. (Headers may hold a small image with an end of its own, so they must not be part of `data`.) */
bool st_jpeg_has_end(struct st_bytes data);

#endif
