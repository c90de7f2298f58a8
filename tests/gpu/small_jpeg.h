/* small_jpeg.h - small JPEG files of every kind
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMALL_JPEG_H
#define SMALL_JPEG_H

#include "base/pixels.h"
#include "codec/jpeg_encode.h"

enum { WIDTH = 61, HEIGHT = 47 };

static struct st_bytes file(struct jpeg_kind kind)
{
    size_t size;
    kind.width = kind.width ? kind.width : WIDTH;
    kind.height = kind.height ? kind.height : HEIGHT;
    uint8_t *data = jpeg_make(&kind, &size);
    return (struct st_bytes){data, size};
}

#endif
