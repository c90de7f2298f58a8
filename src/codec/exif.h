/* exif.h - reads the orientation from EXIF data
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_EXIF_H
#define ST_CODEC_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* The orientation, 1 (upright) to 8, from an EXIF block: the payload of a JPEG's APP1, a PNG's eXIf or a
 * WebP's EXIF chunk, with or without a leading "Exif\0\0". 1 if the block is damaged or does not say. */
uint32_t st_exif_orientation(const uint8_t *data, size_t size);

#endif
