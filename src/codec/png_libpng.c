/* png_libpng.c - PNG by libpng, for machines without libspng
 *
 * The pixels are the same, but libpng is stricter in one respect: it requires the end of the inflated
 * stream, whereas Pillow and libspng stop at the last row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/png_file.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    png_struct *png;
    png_info *info;
    struct st_png_stream *stream;
    char wrong[100];
};

static void give_bytes(png_struct *png, png_byte *to, size_t size)
{
    struct reader *r = png_get_io_ptr(png);
    if (!st_png_stream_read(r->stream, to, size))
        png_error(png, "the image data ends");
}

static void on_error(png_struct *png, const char *what)
{
    struct reader *r = png_get_error_ptr(png);
    strncpy(r->wrong, what, sizeof r->wrong - 1);
    png_longjmp(png, 1);
}

static void on_warning(png_struct *png, const char *what)
{
    (void)png;
    (void)what;
}

static void close_rows(void *reader)
{
    struct reader *r = reader;
    if (r)
        png_destroy_read_struct(&r->png, &r->info, NULL);
    free(r);
}

static void *open_rows(struct st_png_stream *stream, int *status, struct stoker_error *err)
{
    struct reader *r = st_calloc(1, sizeof *r);
    if (r)
        r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, on_error, on_warning);
    if (r && r->png)
        r->info = png_create_info_struct(r->png);
    if (!r || !r->info) {
        close_rows(r);
        *status = st_fail(err, STOKER_ENOMEM, "PNG: out of memory");
        return NULL;
    }
    r->stream = stream;
    stream->with_crc = false; /* only the Adler-32 of the inflated data matters, as in Pillow */
    if (setjmp(png_jmpbuf(r->png))) {
        *status = st_fail(err, STOKER_ECORRUPT, "PNG: %s before the first row", r->wrong);
        close_rows(r);
        return NULL;
    }
    png_set_crc_action(r->png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* our own limits have been checked */
    png_set_read_fn(r->png, r, give_bytes);
    png_read_info(r->png, r->info);
    png_start_read_image(r->png); /* without interlace handling: rows come pass by pass, as stored */
    return r;
}

static const char *next_row(void *reader, uint8_t **row, size_t bytes)
{
    struct reader *r = reader;
    (void)bytes;
    if (setjmp(png_jmpbuf(r->png)))
        return r->wrong;
    png_read_row(r->png, *row, NULL);
    return NULL;
}

static int decode(void *state, struct st_bytes in, const struct st_decode *how, struct st_arena *arena,
                  struct st_view *out, struct stoker_error *err)
{
    static const struct st_png_library library = {open_rows, next_row, close_rows};
    (void)state;
    return st_png_decode(&library, in, how, arena, out, err);
}

static const char *library(void) { return "libpng " PNG_LIBPNG_VER_STRING; }

const struct st_codec st_codec_png = {
    .name = "PNG",
    .probe = st_png_probe,
    .header = st_png_header,
    .decode = decode,
    .based_on = library,
};
