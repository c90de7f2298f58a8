/* regular.h - checks that a JPEG is regular, without decoding it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_REGULAR_H
#define ST_CODEC_JPEG_REGULAR_H

#include "base/pixels.h"

#include <stdbool.h>

/* True for files that our decoder accepts by their headers, whose tables are valid, and whose scan
 * contains only the expected restart markers up to its end marker. Bits in between may be wrong; libjpeg
 * only warns about these, so decoding does not fail. */
bool st_jpeg_is_regular(struct st_bytes in, uint32_t *width, uint32_t *height, uint32_t *components);

#endif
