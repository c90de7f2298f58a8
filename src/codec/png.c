/* png.c - PNG by libspng
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/png_file.h"

#include <spng.h>

static int give_bytes(spng_ctx *ctx, void *user, void *to, size_t size)
{
    (void)ctx;
    return st_png_stream_read(user, to, size) ? 0 : SPNG_IO_EOF;
}

static const char *what_is_wrong(int rc)
{
    switch (rc) {
    case SPNG_IO_EOF:
    case SPNG_EIDAT_TOO_SHORT:
        return "the image data ends";
    case SPNG_EIDAT_STREAM:
        return "damaged image data";
    case SPNG_EFILTER:
        return "an unknown filter";
    default:
        return spng_strerror(rc);
    }
}

static void *open_rows(struct st_png_stream *stream, int *status, struct stoker_error *err)
{
    spng_ctx *ctx = spng_ctx_new(0);
    int rc = ctx ? spng_set_png_stream(ctx, give_bytes, stream) : SPNG_EMEM;
    if (!rc)
        rc = spng_decode_image(ctx, NULL, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE);
    /* From here on the checksums of IDATs are ignored, as in Pillow. Not earlier, because libspng would
     * then also ignore the Adler-32 of the inflated data, which detects damaged pixels. */
    stream->with_crc = false;
    if (!rc)
        rc = spng_set_crc_action(ctx, SPNG_CRC_USE, SPNG_CRC_USE);
    if (!rc)
        return ctx;
    if (rc == SPNG_EMEM)
        *status = st_fail(err, STOKER_ENOMEM, "PNG: out of memory");
    else
        *status = st_fail(err, STOKER_ECORRUPT, "PNG: %s before the first row", what_is_wrong(rc));
    spng_ctx_free(ctx);
    return NULL;
}

static const char *next_row(void *reader, uint8_t **row, size_t bytes)
{
    const int rc = spng_decode_scanline(reader, *row, bytes);
    return rc == 0 || rc == SPNG_EOI ? NULL : what_is_wrong(rc);
}

static void close_rows(void *reader) { spng_ctx_free(reader); }

static int decode(void *state, struct st_bytes in, const struct st_decode *how, struct st_arena *arena,
                  struct st_view *out, struct stoker_error *err)
{
    static const struct st_png_library library = {open_rows, next_row, close_rows};
    (void)state;
    return st_png_decode(&library, in, how, arena, out, err);
}

#define TEXT_OF(macro) TEXT(macro)
#define TEXT(words)    #words

static const char *library(void)
{
    return "libspng " TEXT_OF(SPNG_VERSION_MAJOR) "." TEXT_OF(SPNG_VERSION_MINOR) "." TEXT_OF(
        SPNG_VERSION_PATCH);
}

const struct st_codec st_codec_png = {
    .name = "PNG",
    .probe = st_png_probe,
    .header = st_png_header,
    .decode = decode,
    .based_on = library,
};
