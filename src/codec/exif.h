/* exif.h - which way up the camera was held
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_EXIF_H
#define ST_CODEC_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* The orientation, 1 (upright) to 8, out of an EXIF block: the payload of a JPEG's APP1, of PNG's eXIf
 * or of WebP's EXIF chunk, with or without "Exif\0\0" in front. 1 where the block is damaged or says
 * nothing. */
uint32_t st_exif_orientation(const uint8_t *data, size_t size);

#endif
