/* registry.c - the codecs of this build
 *
 * To add one: copy the smallest, rename, add a line here and one to meson.build, write its test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/codec.h"

#include "st_config.h"

#include <string.h>

extern const struct st_codec st_codec_bmp, st_codec_jpeg, st_codec_png, st_codec_pnm, st_codec_tiff,
    st_codec_webp;

/* The likeliest first: all are asked in turn. */
const struct st_codec *const st_codecs[] = {
    &st_codec_jpeg,
    &st_codec_png,
#if ST_HAVE_WEBP
    &st_codec_webp,
#endif
    &st_codec_bmp,
    &st_codec_pnm,
#if ST_HAVE_TIFF
    &st_codec_tiff,
#endif
    NULL,
};

#if !ST_HAVE_WEBP
static bool is_webp(const uint8_t *data, size_t size)
{
    return size >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0;
}
#endif

#if !ST_HAVE_TIFF
static bool is_tiff(const uint8_t *data, size_t size)
{
    return size >= 4 && (memcmp(data, "II*\0", 4) == 0 || memcmp(data, "MM\0*", 4) == 0 ||
                         memcmp(data, "II+\0", 4) == 0 || memcmp(data, "MM\0+", 4) == 0);
}
#endif

const struct st_codec_missing st_codecs_missing[] = {
#if !ST_HAVE_WEBP
    {"WebP", "libwebp", is_webp},
#endif
#if !ST_HAVE_TIFF
    {"TIFF", "libtiff", is_tiff},
#endif
    {NULL, NULL, NULL},
};
