/* jpeg_own.h - what the tests of our JPEG decoder share: files of every kind, and libjpeg's opinion of
 * them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_JPEG_OWN_H
#define ST_TESTS_JPEG_OWN_H

#include "codec/jpeg/baseline.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h> /* numbers its messages by the version that jpeglib.h gives */

/* ---- numbers ----------------------------------------------------------------------------------- */

static uint64_t random_state = 1;

static inline uint32_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32);
}

static inline uint32_t below(uint32_t limit)
{
    return (uint32_t)((uint64_t)random_bits() * limit >> 32);
}

/* ---- making files ------------------------------------------------------------------------------ */

enum own_sampling { OWN_GREY, OWN_444, OWN_422, OWN_440, OWN_420, OWN_SAMPLINGS };

/* One scan; progressive as by default; progressive with scans drawn at random. */
enum own_scans { OWN_ONE_SCAN, OWN_USUAL_SCANS, OWN_RANDOM_SCANS };

struct own_kind {
    uint32_t width, height;
    enum own_sampling sampling;
    uint32_t quality, restart; /* restart: MCUs, 0 for none */
    bool optimised, rgb;       /* rgb: no change of colours */
    uint32_t noise;            /* 0: smooth, 255: nothing but noise */
    enum own_scans scans;
};

static inline void own_paint(uint8_t *row, uint32_t y, const struct own_kind *kind, uint32_t channels)
{
    for (uint32_t x = 0; x < kind->width; x++)
        for (uint32_t c = 0; c < channels; c++) {
            const uint32_t wave = (x * (3 + c) + y * (5 - c)) & 255,
                           edge = (x / 11 + y / 7 + c) % 3 * 40;
            const uint32_t smooth = (wave < 128 ? wave : 255 - wave) + edge, noise = random_bits() & 255;
            row[x * channels + c] =
                (uint8_t)((smooth * (255 - kind->noise) + noise * kind->noise) / 255);
        }
}

enum { OWN_SCANS_MAX = 80 };

/* The band [first, last] of a component in one scan or in two. */
static inline int own_band(jpeg_scan_info *to, int component, int high, int low)
{
    const int split = below(2) ? 1 + (int)below(62) : 63;
    to[0] = (jpeg_scan_info){1, {component}, 1, split, high, low};
    to[1] = (jpeg_scan_info){1, {component}, split + 1, 63, high, low};
    return split < 63 ? 2 : 1;
}

/* The DC of all components in one scan, or in one each. */
static inline int own_dc(jpeg_scan_info *to, int components, int high, int low)
{
    const bool together = components == 3 && below(3);
    for (int k = 0; k < components; k++)
        to[k] = (jpeg_scan_info){1, {k}, 0, 0, high, low};
    if (together)
        to[0] = (jpeg_scan_info){3, {0, 1, 2}, 0, 0, high, low};
    return together ? 1 : components;
}

/* Scans in an order that is drawn, and nothing missing at the end; returns their number. */
static inline int own_script(jpeg_scan_info *script, int components)
{
    int low[4], count = 0, left = 1 + components; /* of the components, and of DC */
    for (int k = 0; k <= components; k++)
        low[k] = (int)below(4) + 1; /* + 1: nothing yet, then one scan for each bit */
    const int dc = low[components] - 1;
    int begun[4] = {0};
    count += own_dc(script, components, 0, dc);
    low[components] = dc;
    left -= dc == 0;
    while (left > 0) {
        const int k = (int)below((uint32_t)components + 1);
        if (low[k] == 0)
            continue;
        if (k == components)
            count += own_dc(script + count, components, low[k], low[k] - 1);
        else
            count += own_band(script + count, k, begun[k] ? low[k] : 0, low[k] - 1);
        begun[k] = 1;
        left -= --low[k] == 0;
    }
    return count;
}

static inline void own_setup(struct jpeg_compress_struct *c, const struct own_kind *kind)
{
    static const int factor[OWN_SAMPLINGS][2] = {{1, 1}, {1, 1}, {2, 1}, {1, 2}, {2, 2}};
    const bool grey = kind->sampling == OWN_GREY;
    c->image_width = kind->width;
    c->image_height = kind->height;
    c->input_components = grey ? 1 : 3;
    c->in_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(c);
    if (kind->rgb && !grey)
        jpeg_set_colorspace(c, JCS_RGB);
    jpeg_set_quality(c, (int)kind->quality, FALSE);
    for (int k = 0; k < c->num_components; k++)
        c->comp_info[k].h_samp_factor = c->comp_info[k].v_samp_factor = 1;
    c->comp_info[0].h_samp_factor = factor[kind->sampling][0];
    c->comp_info[0].v_samp_factor = factor[kind->sampling][1];
    c->restart_interval = kind->restart;
    c->optimize_coding = kind->optimised;
}

/* Counts warnings about an image's data, says nothing. */
static inline void own_message(j_common_ptr c, int level)
{
    if (level < 0 && c->err->msg_code != JWRN_JFIF_MAJOR)
        c->err->num_warnings++;
}

/* A file being written to memory. */
struct own_writer {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *file;
    unsigned long size;
    jpeg_scan_info script[OWN_SCANS_MAX];
};

static inline void own_scans(struct own_writer *w, const struct own_kind *kind)
{
    if (kind->scans == OWN_USUAL_SCANS)
        jpeg_simple_progression(&w->c);
    if (kind->scans != OWN_RANDOM_SCANS)
        return;
    w->c.num_scans = own_script(w->script, w->c.num_components);
    w->c.scan_info = w->script;
}

static inline void own_open(struct own_writer *w, const struct own_kind *kind)
{
    memset(w, 0, sizeof *w);
    w->c.err = jpeg_std_error(&w->errors);
    w->errors.emit_message = own_message;
    jpeg_create_compress(&w->c);
    jpeg_mem_dest(&w->c, &w->file, &w->size);
    own_setup(&w->c, kind);
    own_scans(w, kind);
}

/* The file, to be freed. */
static inline struct st_bytes own_close(struct own_writer *w)
{
    jpeg_finish_compress(&w->c);
    jpeg_destroy_compress(&w->c);
    return (struct st_bytes){w->file, w->size};
}

static inline struct st_bytes own_make(const struct own_kind *kind)
{
    struct own_writer w;
    own_open(&w, kind);
    jpeg_start_compress(&w.c, TRUE);
    uint8_t *row = malloc((size_t)kind->width * 3);
    while (w.c.next_scanline < w.c.image_height) {
        own_paint(row, w.c.next_scanline, kind, (uint32_t)w.c.input_components);
        jpeg_write_scanlines(&w.c, &row, 1);
    }
    free(row);
    return own_close(&w);
}

/* ---- files made of coefficients ----------------------------------------------------------------- */

enum own_style { OWN_SPARSE, OWN_LIMIT, OWN_WILD, OWN_STYLES };

/* A block in natural order. At the limit, the absolute values of each column add up to what is still
 * ours. */
static inline void own_block(JCOEF *block, const uint16_t *steps, enum own_style style)
{
    memset(block, 0, 64 * sizeof *block);
    if (style == OWN_WILD)
        for (uint32_t k = 0, count = below(8), most = 1u << below(11); k < count; k++)
            block[below(64)] = (JCOEF)((int32_t)below(2 * most - 1) - (int32_t)most + 1);
    else if (style == OWN_SPARSE)
        for (uint32_t k = 0, count = below(6); k < count; k++)
            block[below(64)] = (JCOEF)((int32_t)below(19) - 9);
    else
        for (uint32_t column = 0; column < 8; column++) {
            uint32_t left = 2950;
            for (uint32_t k = 0, count = 1 + below(8); k < count; k++) {
                const uint32_t at = 8 * below(8) + column, most = left / (steps[at] ? steps[at] : 1);
                const uint32_t size = below(4) ? most : below(most + 1),
                               value = size < 1023 ? size : 1023;
                if (block[at] != 0)
                    continue;
                block[at] = (JCOEF)(below(2) ? (int32_t)value : -(int32_t)value);
                left -= value * steps[at];
            }
        }
}

static inline void own_fill(struct jpeg_compress_struct *c, jvirt_barray_ptr *arrays,
                            enum own_style style)
{
    for (int k = 0; k < c->num_components; k++) {
        const jpeg_component_info *info = &c->comp_info[k];
        const uint16_t *steps = c->quant_tbl_ptrs[info->quant_tbl_no]->quantval;
        const JDIMENSION h = (JDIMENSION)info->h_samp_factor, v = (JDIMENSION)info->v_samp_factor;
        const JDIMENSION across = (info->width_in_blocks + h - 1) / h * h;
        const JDIMENSION down = (info->height_in_blocks + v - 1) / v * v;
        for (JDIMENSION y = 0; y < down; y++) {
            JBLOCKARRAY row = c->mem->access_virt_barray((j_common_ptr)c, arrays[k], y, 1, TRUE);
            for (JDIMENSION x = 0; x < across; x++)
                own_block(row[0][x], steps, style);
        }
    }
}

/* A file of random coefficients; steps up to `steps`. */
static inline struct st_bytes own_make_coefs(const struct own_kind *kind, enum own_style style,
                                             uint32_t steps)
{
    struct own_writer w;
    jvirt_barray_ptr arrays[3];
    own_open(&w, kind);
    for (int table = 0; table < 2; table++)
        for (int k = 0; k < 64 && w.c.quant_tbl_ptrs[table]; k++)
            w.c.quant_tbl_ptrs[table]->quantval[k] = (UINT16)(1 + below(steps));
    const uint32_t h = (uint32_t)w.c.comp_info[0].h_samp_factor;
    const uint32_t v = (uint32_t)w.c.comp_info[0].v_samp_factor;
    for (int k = 0; k < w.c.num_components; k++) { /* as jpeg_write_coefficients will find them */
        jpeg_component_info *info = &w.c.comp_info[k];
        info->width_in_blocks = (kind->width * (uint32_t)info->h_samp_factor + 8 * h - 1) / (8 * h);
        info->height_in_blocks = (kind->height * (uint32_t)info->v_samp_factor + 8 * v - 1) / (8 * v);
        arrays[k] = w.c.mem->request_virt_barray((j_common_ptr)&w.c, JPOOL_IMAGE, TRUE,
                                                 info->width_in_blocks + 2, info->height_in_blocks + 2,
                                                 (JDIMENSION)info->v_samp_factor);
    }
    w.c.optimize_coding = TRUE;
#if JPEG_LIB_VERSION >= 70 /* builds with the newer interface want the size of the file besides */
    w.c.jpeg_width = w.c.image_width;
    w.c.jpeg_height = w.c.image_height;
#endif
    jpeg_write_coefficients(&w.c, arrays);
    own_fill(&w.c, arrays, style);
    return own_close(&w);
}

/* ---- libjpeg's opinion ------------------------------------------------------------------------- */

enum { OWN_PIXELS_MAX = 1 << 22 };

struct own_reference {
    uint8_t *rgb; /* whole image; NULL: libjpeg refused it, or it is larger than OWN_PIXELS_MAX */
    uint32_t width, height;
    long warnings;
};

struct own_errors {
    struct jpeg_error_mgr manager;
    jmp_buf failed;
};

static inline void own_error_exit(j_common_ptr c) { longjmp(((struct own_errors *)c->err)->failed, 1); }

static inline struct own_reference own_reference(struct st_bytes in)
{
    struct jpeg_decompress_struct c;
    struct own_errors errors;
    struct own_reference *out = calloc(1, sizeof *out); /* not on the stack that longjmp forgets */
    c.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = own_error_exit;
    errors.manager.emit_message = own_message;
    jpeg_create_decompress(&c);
    if (setjmp(errors.failed) == 0) {
        jpeg_mem_src(&c, in.data, in.size);
        jpeg_read_header(&c, TRUE);
        c.out_color_space = JCS_RGB;
        out->width = c.image_width;
        out->height = c.image_height;
        if ((uint64_t)out->width * out->height <= OWN_PIXELS_MAX) {
            jpeg_start_decompress(&c);
            out->rgb = malloc((size_t)out->width * out->height * 3);
        }
        while (out->rgb && c.output_scanline < c.output_height) {
            JSAMPROW row = out->rgb + (size_t)c.output_scanline * out->width * 3;
            jpeg_read_scanlines(&c, &row, 1);
        }
        if (out->rgb)
            jpeg_finish_decompress(&c);
    } else {
        free(out->rgb);
        out->rgb = NULL;
    }
    out->warnings = errors.manager.num_warnings;
    jpeg_destroy_decompress(&c);
    const struct own_reference result = *out;
    free(out);
    return result;
}

/* ---- comparing --------------------------------------------------------------------------------- */

static inline struct st_region own_box(uint32_t width, uint32_t height)
{
    struct st_region r;
    r.width = 1 + below(width);
    r.height = 1 + below(height);
    r.x = below(4) ? below(width - r.width + 1) : below(2) ? width - r.width : 0;
    r.y = below(4) ? below(height - r.height + 1) : below(2) ? height - r.height : 0;
    return r;
}

/* Whether the view holds exactly the region of the reference; says where not. */
static inline bool own_equal(const struct own_reference *ref, struct st_region r,
                             const struct st_view *view)
{
    if (view->width != (int32_t)r.width || view->height != (int32_t)r.height || view->channels != 3)
        return false;
    for (uint32_t y = 0; y < r.height; y++) {
        const uint8_t *want = ref->rgb + ((size_t)(r.y + y) * ref->width + r.x) * 3;
        const uint8_t *got = st_row(view, (int32_t)y);
        for (uint32_t k = 0; k < r.width * 3; k++)
            if (want[k] != got[k]) {
                printf("# box %u,%u %ux%u: pixel %u,%u channel %u is %u, not %u\n", r.x, r.y, r.width,
                       r.height, k / 3, y, k % 3, got[k], want[k]);
                return false;
            }
    }
    return true;
}

#endif
