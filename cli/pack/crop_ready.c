/* crop_ready.c - rewrites JPEG files so that any part can be decoded alone
 *
 * The coefficients are unchanged, so every decoder returns the same pixels; only their encoding changes:
 * one scan, tables optimized for the file, and restart markers every few MCUs. To decode a region, a
 * decoder then reads only the intervals that the region touches.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "cli/pack/jpeg_out.h"

#include <stdlib.h>
#include <string.h>

enum {
    INTERVAL = 8
}; /* MCUs, approximately: shorter intervals cost bytes, longer ones decode too much */

struct transcode {
    struct pack_jpeg_errors errors;
    struct pack_jpeg_out out;
    struct jpeg_decompress_struct from;
    struct jpeg_compress_struct to;
};

/* The divisor of the row length closest to INTERVAL, by ratio; at least 2 if possible. */
static unsigned int interval_for(unsigned int row)
{
    unsigned int best = row;
    for (unsigned int d = 2; d < row; d++) {
        const double ratio = d > INTERVAL ? (double)d / INTERVAL : (double)INTERVAL / d;
        const double best_ratio = best > INTERVAL ? (double)best / INTERVAL : (double)INTERVAL / best;
        if (row % d == 0 && ratio < best_ratio)
            best = d;
    }
    return best;
}

/* Files whose pixels depend on more than their coefficients, or that few decoders can read. */
static bool is_suitable(const struct jpeg_decompress_struct *from)
{
    const bool colour = from->num_components == 3 && from->jpeg_color_space == JCS_YCbCr;
    const bool grey = from->num_components == 1 && from->jpeg_color_space == JCS_GRAYSCALE;
    return (colour || grey) && from->data_precision == 8 && !from->arith_code;
}

/* Whether a progressive file has all bits of its coefficients: decoders guess missing ones. */
static bool is_whole(const struct jpeg_decompress_struct *from)
{
    if (!from->coef_bits)
        return true;
    for (int c = 0; c < from->num_components; c++)
        for (int k = 0; k < DCTSIZE2; k++)
            if (from->coef_bits[c][k] != 0)
                return false;
    return true;
}

static void copy_markers(struct transcode *t)
{
    for (jpeg_saved_marker_ptr m = t->from.marker_list; m; m = m->next) {
        const bool jfif = m->marker == JPEG_APP0 && m->data_length >= 5 && !memcmp(m->data, "JFIF", 5);
        const bool adobe =
            m->marker == JPEG_APP0 + 14 && m->data_length >= 5 && !memcmp(m->data, "Adobe", 5);
        if (!(jfif && t->to.write_JFIF_header) && !(adobe && t->to.write_Adobe_marker))
            jpeg_write_marker(&t->to, m->marker, m->data, m->data_length);
    }
}

static bool transcode(struct transcode *t, struct st_bytes jpeg, struct st_buffer *into)
{
    jpeg_mem_src(&t->from, (unsigned char *)(uintptr_t)jpeg.data, (unsigned long)jpeg.size);
    for (int i = 0; i < 16; i++)
        jpeg_save_markers(&t->from, JPEG_APP0 + i, 0xffff);
    jpeg_save_markers(&t->from, JPEG_COM, 0xffff);
    if (jpeg_read_header(&t->from, TRUE) != JPEG_HEADER_OK || !is_suitable(&t->from))
        return false;
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&t->from);
    if (!coefficients || t->from.err->num_warnings || !is_whole(&t->from))
        return false;
    jpeg_copy_critical_parameters(&t->from, &t->to);
    const int h = t->from.num_components == 1 ? 1 : t->from.max_h_samp_factor;
    const unsigned int mcu = (unsigned int)h * DCTSIZE;
    t->to.optimize_coding = TRUE;
    t->to.arith_code = FALSE;
    t->to.restart_in_rows = 0;
    t->to.restart_interval = interval_for((t->from.image_width + mcu - 1) / mcu);
    pack_jpeg_out(&t->to, &t->out, into);
    jpeg_write_coefficients(&t->to, coefficients);
    copy_markers(t);
    jpeg_finish_compress(&t->to);
    jpeg_finish_decompress(&t->from);
    return true;
}

bool pack_crop_ready(struct st_bytes jpeg, struct st_buffer *into)
{
    struct transcode *t = st_calloc(1, sizeof *t);
    volatile bool done = false;
    if (!t)
        return false;
    /* A warning means damage, and the pixels of a damaged file depend on its encoding: leave it
     * unchanged. */
    t->from.err = t->to.err = pack_jpeg_errors(&t->errors, true);
    if (!setjmp(t->errors.out)) {
        jpeg_create_decompress(&t->from);
        jpeg_create_compress(&t->to);
        done = transcode(t, jpeg, into);
    } else {
        done = false;
    }
    jpeg_destroy_compress(&t->to);
    jpeg_destroy_decompress(&t->from);
    free(t);
    return done;
}
