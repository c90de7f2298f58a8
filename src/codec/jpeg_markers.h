/* jpeg_markers.h - reads a JPEG's headers up to its first scan
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

/* Walks the markers up to the first scan by Pillow's rules, so that files that Pillow refuses to open
 * are refused here, too. */
int st_jpeg_markers(struct st_bytes in, struct st_jpeg_info *out, struct stoker_error *err);

/* Whether the image's data, which starts after the header of its first scan, has an end marker. The
 * search starts at the back, so that it is found at once in complete files; what follows it is ignored.
 * (`data` must not include the headers, because these may contain a thumbnail with its own end
 * marker.) */
bool st_jpeg_has_end(struct st_bytes data);

#endif
