/* regular.h - whether nothing is amiss in a JPEG, without decoding it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_REGULAR_H
#define ST_CODEC_JPEG_REGULAR_H

#include "base/pixels.h"

#include <stdbool.h>

/* True for files that our decoder takes by their headers, whose tables are valid and whose scan holds no other
 * markers than the restarts that belong there, up to its end marker. Wrong bits in between are possible; to libjpeg
 * these are warnings, so that decoding does not fail. */
bool st_jpeg_is_regular(struct st_bytes in, uint32_t *width, uint32_t *height, uint32_t *components);

#endif
