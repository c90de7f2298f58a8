/* jpeg_recode.c - the loss of pixels that are written as a JPEG and read again
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg_recode.h"

#include "codec/codec.h"
#include "codec/jpeg/forward.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>
#include <jerror.h> /* numbers its messages by the version that jpeglib.h gives */

extern const struct st_codec st_codec_jpeg;

enum { MCU = 16, BYTES_PER_PIXEL = 8, HEADER_BYTES = 4096 }; /* of a file, at most */

struct writer {
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr destination;
    const struct st_view *in;
    int32_t quality;
    bool swapped;
    uint8_t *row; /* with red and blue in each other's places */
    jmp_buf failed;
};

static int fail_size(const struct st_view *in, struct stoker_error *err)
{
    return st_fail(err, STOKER_ELIMIT, "JPEG: %d x %d pixels are too large: sides have up to %d",
                   in->width, in->height, ST_JPEG_SIDE_MAX);
}

static int fail_memory(const struct st_view *in, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "JPEG: no memory for %d x %d pixels", in->width, in->height);
}

/* ---- libjpeg ----------------------------------------------------------------------------------- */

static void error_exit(j_common_ptr cinfo) { longjmp(((struct writer *)cinfo)->failed, 1); }
static void emit_message(j_common_ptr cinfo, int level) { (void)cinfo, (void)level; }
static void output_message(j_common_ptr cinfo) { (void)cinfo; }
static void begin_or_end(j_compress_ptr cinfo) { (void)cinfo; }

/* There is room for any file. */
static boolean empty_output_buffer(j_compress_ptr cinfo)
{
    ERREXIT(cinfo, JERR_BUFFER_SIZE);
    return FALSE;
}

static JSAMPROW row_of(const struct writer *w, int32_t y)
{
    const uint8_t *from = st_row(w->in, y);
    if (!w->swapped || w->in->channels != 3)
        return st_row(w->in, y);
    for (int32_t x = 0; x < 3 * w->in->width; x += 3) {
        w->row[x] = from[x + 2];
        w->row[x + 1] = from[x + 1];
        w->row[x + 2] = from[x];
    }
    return w->row;
}

static void write_rows(struct writer *w)
{
    struct jpeg_compress_struct *cinfo = &w->cinfo;
    cinfo->dest = &w->destination;
    cinfo->image_width = (JDIMENSION)w->in->width;
    cinfo->image_height = (JDIMENSION)w->in->height;
    cinfo->input_components = w->in->channels;
    cinfo->in_color_space = w->in->channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(cinfo);
    jpeg_set_quality(cinfo, w->quality, TRUE);
    jpeg_start_compress(cinfo, TRUE);
    for (int32_t y = 0; y < w->in->height; y++) {
        JSAMPROW row = row_of(w, y);
        jpeg_write_scanlines(cinfo, &row, 1);
    }
    jpeg_finish_compress(cinfo);
}

static int fail_by_libjpeg(struct writer *w, struct stoker_error *err)
{
    char reason[JMSG_LENGTH_MAX];
    if (w->errors.msg_code == JERR_OUT_OF_MEMORY)
        return fail_memory(w->in, err);
    w->errors.format_message((j_common_ptr)&w->cinfo, reason);
    return st_fail(err, STOKER_EUNSUPPORTED, "JPEG: %d x %d pixels cannot be written: %s", w->in->width,
                   w->in->height, reason);
}

static int write_file(struct writer *w, struct stoker_error *err)
{
    w->cinfo.err = jpeg_std_error(&w->errors);
    w->errors.error_exit = error_exit;
    w->errors.emit_message = emit_message;
    w->errors.output_message = output_message;
    w->destination.init_destination = w->destination.term_destination = begin_or_end;
    w->destination.empty_output_buffer = empty_output_buffer;
    if (setjmp(w->failed) == 0) {
        jpeg_create_compress(&w->cinfo);
        write_rows(w);
        jpeg_destroy_compress(&w->cinfo);
        return STOKER_OK;
    }
    const int rc = fail_by_libjpeg(w, err);
    jpeg_destroy_compress(&w->cinfo);
    return rc;
}

static int read_file(struct st_bytes file, const struct st_view *in, struct st_arena *arena,
                     struct st_view *out, struct stoker_error *err)
{
    const struct st_decode how = {1, {0, 0, (uint32_t)in->width, (uint32_t)in->height}};
    void *state = st_calloc(1, st_codec_jpeg.state_size);
    if (!state)
        return fail_memory(in, err);
    const int rc = st_codec_jpeg.decode(state, file, &how, arena, out, err);
    st_codec_jpeg.close(state);
    free(state);
    return rc;
}

/* The decoder gives RGB; of one channel all three are alike. */
static void reorder(const struct st_view *in, bool swapped, enum st_cpu_level level, struct st_view *rgb)
{
    const struct st_jpeg_forward_rows *rows = st_jpeg_forward_rows_for(level);
    for (int32_t y = 0; y < rgb->height; y++) {
        uint8_t *row = st_row(rgb, y);
        for (int32_t x = 0; in->channels == 1 && x < rgb->width; x++)
            row[x] = row[3 * x];
        if (swapped && in->channels == 3)
            rows->swap(row, (size_t)rgb->width);
    }
    rgb->channels = in->channels;
}

int st_jpeg_recode_by_libjpeg(const struct st_view *in, int32_t quality, bool swapped,
                              struct st_arena *arena, struct st_view *out, struct stoker_error *err)
{
    if (in->width > ST_JPEG_SIDE_MAX || in->height > ST_JPEG_SIDE_MAX)
        return fail_size(in, err);
    struct writer *w = st_arena_take(arena, sizeof *w);
    const uint64_t width = st_align((uint64_t)in->width, MCU);
    const uint64_t room = BYTES_PER_PIXEL * width * st_align((uint64_t)in->height, MCU) + HEADER_BYTES;
    uint8_t *file = st_arena_take(arena, room), *row = st_arena_take(arena, 3 * width);
    if (!w || !file || !row)
        return fail_memory(in, err);
    memset(w, 0, sizeof *w);
    w->in = in;
    w->quality = quality;
    w->swapped = swapped;
    w->row = row;
    w->destination.next_output_byte = file;
    w->destination.free_in_buffer = room;
    int rc = write_file(w, err);
    if (rc >= 0)
        rc = read_file((struct st_bytes){file, room - w->destination.free_in_buffer}, in, arena, out,
                       err);
    if (rc >= 0)
        reorder(in, swapped, ST_CPU_C, out);
    return rc;
}

int st_jpeg_recode(const struct st_view *in, int32_t quality, bool swapped, enum st_cpu_level level,
                   struct st_arena *arena, struct st_view *out, struct stoker_error *err)
{
    if (in->width > ST_JPEG_SIDE_MAX || in->height > ST_JPEG_SIDE_MAX)
        return fail_size(in, err);
    switch (st_jpeg_there_and_back(in, quality, swapped, level, arena, out)) {
    case ST_JPEG_OURS:
        reorder(in, swapped, level, out);
        return STOKER_OK;
    case ST_JPEG_MEMORY:
        return fail_memory(in, err);
    default:
        return st_jpeg_recode_by_libjpeg(in, quality, swapped, arena, out, err);
    }
}
