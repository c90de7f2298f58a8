/* jpeg.c - JPEG: our own decoder for common files, libjpeg-turbo for the rest
 *
 * Uses the accurate integer DCT and fancy upsampling, libjpeg's defaults, and so gives Pillow's pixels.
 * For a region, only the needed columns are transformed and only the needed rows are colour converted,
 * and reading stops after its last row; the bytes are the same as those of a crop of the whole image.
 *
 * Damaged files are treated as by Pillow: data that ends too early is an error, even if the region lies
 * above the end, while wrong bits inside the data give the pixels that libjpeg makes of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/codec.h"
#include "base/text.h"
#include "codec/jpeg/baseline.h"
#include "codec/jpeg_markers.h"
#include "codec/jpeg_memory.h"
#include "codec/to_rgb.h"

#include <assert.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>

enum {
    SCANS_MAX = 500,     /* regular progressive files have about ten; each costs a pass over the image */
    CROP_WIDTH_MIN = 64, /* for narrower ones libjpeg would choose other upsamplers */
    ROWS_AT_ONCE = 16,
    SMOOTHED_COEFS = 10,
    FRAME_PROGRESSIVE = 0xC2,
    BANDS = 8 << 20, /* maximum bytes of coefficients that our decoder holds at once */
};

struct jpeg_state {
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    struct st_jpeg_memory memory;
    bool created;
    struct st_jpeg *own;
    bool by_libjpeg; /* STOKER_JPEG=libjpeg: use libjpeg for everything */
    jmp_buf failed;
};

/* One decode; kept out of the function that calls setjmp. */
struct job {
    struct jpeg_state *state;
    struct st_bytes in;
    const struct st_decode *how;
    struct st_arena *arena;
    struct st_view *out;
    struct stoker_error *err;
};

/* ---- what libjpeg calls ------------------------------------------------------------------------ */

static void error_exit(j_common_ptr cinfo)
{
    struct jpeg_state *state = (struct jpeg_state *)cinfo;
    longjmp(state->failed, 1);
}

static void emit_message(j_common_ptr cinfo, int level)
{
    if (level < 0)
        cinfo->err->num_warnings++;
}

static void output_message(j_common_ptr cinfo) { (void)cinfo; }

static void init_source(j_decompress_ptr cinfo) { (void)cinfo; }

/* All bytes have been supplied: libjpeg stops where it is, and the caller notices. */
static boolean fill_input_buffer(j_decompress_ptr cinfo)
{
    (void)cinfo;
    return FALSE;
}

static void skip_input_data(j_decompress_ptr cinfo, long count)
{
    struct jpeg_source_mgr *source = cinfo->src;
    const size_t bytes = count < 0 ? 0 : (size_t)count;
    const size_t skipped = bytes < source->bytes_in_buffer ? bytes : source->bytes_in_buffer;
    source->next_input_byte += skipped;
    source->bytes_in_buffer -= skipped;
}

static void watch_scans(j_common_ptr common)
{
    j_decompress_ptr cinfo = (j_decompress_ptr)common;
    if (cinfo->input_scan_number > SCANS_MAX)
        ERREXIT(cinfo, JERR_BAD_PROGRESSION);
}

/* ---- errors ------------------------------------------------------------------------------------ */

static size_t bytes_read(const struct job *job)
{
    return job->in.size - job->state->source.bytes_in_buffer;
}

static int fail_truncated(const struct job *job)
{
    const struct jpeg_decompress_struct *cinfo = &job->state->cinfo;
    return st_fail(job->err, STOKER_ECORRUPT,
                   "JPEG: truncated: data ends at byte %zu, after %u of %u row%s", job->in.size,
                   cinfo->output_scanline, cinfo->output_height, st_s(cinfo->output_height));
}

static int fail_by_libjpeg(const struct job *job)
{
    j_common_ptr cinfo = (j_common_ptr)&job->state->cinfo;
    char reason[JMSG_LENGTH_MAX];
    if (cinfo->err->msg_code == JERR_OUT_OF_MEMORY)
        return st_fail(job->err, STOKER_ENOMEM, "JPEG: out of memory");
    if (job->state->cinfo.input_scan_number > SCANS_MAX)
        return st_fail(job->err, STOKER_ELIMIT, "JPEG: more than %d scans; such files are refused",
                       SCANS_MAX);
    cinfo->err->format_message(cinfo, reason);
    const bool known_kind = cinfo->err->msg_code == JERR_SOF_UNSUPPORTED;
    return st_fail(job->err, known_kind ? STOKER_EUNSUPPORTED : STOKER_ECORRUPT,
                   "JPEG: %s (near byte %zu of %zu)", reason, bytes_read(job), job->in.size);
}

/* ---- decoding ---------------------------------------------------------------------------------- */

static void create(struct jpeg_state *state)
{
    struct jpeg_decompress_struct *cinfo = &state->cinfo;
    cinfo->err = jpeg_std_error(&state->errors);
    state->errors.error_exit = error_exit;
    state->errors.emit_message = emit_message;
    state->errors.output_message = output_message;
    jpeg_create_decompress(cinfo);
    st_jpeg_memory_use(cinfo, &state->memory);
    state->source = (struct jpeg_source_mgr){
        .init_source = init_source,
        .fill_input_buffer = fill_input_buffer,
        .skip_input_data = skip_input_data,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = init_source,
    };
    cinfo->src = &state->source;
    state->progress.progress_monitor = watch_scans;
    cinfo->progress = &state->progress;
    state->created = true;
}

/* If the scans of a progressive file do not reach full precision, libjpeg smooths the borders of blocks,
 * using their neighbours. */
static bool is_smoothed(const struct jpeg_decompress_struct *cinfo)
{
    if (!cinfo->progressive_mode || !cinfo->coef_bits)
        return false;
    for (int component = 0; component < cinfo->num_components; component++)
        for (int k = 1; k < SMOOTHED_COEFS; k++)
            if (cinfo->coef_bits[component][k] != 0)
                return true;
    return false;
}

/* Whether libjpeg can narrow this file. It does not keep neighbours for smoothing; and with some
 * samplings at a reduced scale, where a component is scaled less than the others, it uses a wrong width
 * for upsampling. */
static bool can_narrow(const struct jpeg_decompress_struct *cinfo)
{
    for (int k = 0; k < cinfo->num_components; k++) {
        const jpeg_component_info *c = &cinfo->comp_info[k];
        const uint64_t samples = (uint64_t)cinfo->output_width * (unsigned)c->h_samp_factor;
        const unsigned most = (unsigned)cinfo->max_h_samp_factor;
        const bool full =
            c->downsampled_width == cinfo->output_width && c->downsampled_height == cinfo->output_height;
        if (!full && c->downsampled_width != (samples + most - 1) / most)
            return false;
    }
    return !is_smoothed(cinfo);
}

/* Narrows the output to the columns that the region needs; *x becomes the region's offset in it.
 * Upsampling uses one neighbour on each side, so another column is added where there is one. */
static void narrow(struct jpeg_decompress_struct *cinfo, const struct st_region *region, JDIMENSION *x)
{
    JDIMENSION first = region->x, end = region->x + region->width;
    *x = region->x;
    if (cinfo->max_h_samp_factor > 1) {
        first -= first > 0;
        end += end < cinfo->output_width;
    }
    if (end - first < CROP_WIDTH_MIN) {
        end = first + CROP_WIDTH_MIN;
        if (end > cinfo->output_width) {
            end = cinfo->output_width;
            first = end > CROP_WIDTH_MIN ? end - CROP_WIDTH_MIN : 0;
        }
    }
    JDIMENSION width = end - first;
    jpeg_crop_scanline(cinfo, &first, &width);
    *x = region->x - first;
}

/* False: the data ended. */
static bool read_rows(struct jpeg_decompress_struct *cinfo, uint8_t *rows, size_t stride, uint32_t count)
{
    JSAMPROW list[ROWS_AT_ONCE];
    for (uint32_t done = 0; done < count;) {
        const uint32_t most = count - done < ROWS_AT_ONCE ? count - done : ROWS_AT_ONCE;
        for (uint32_t k = 0; k < most; k++)
            list[k] = rows + (done + k) * stride;
        const JDIMENSION got = jpeg_read_scanlines(cinfo, list, most);
        if (got == 0)
            return false;
        done += got;
    }
    return true;
}

/* CMYK as stored by Adobe, inverted; Pillow assumes this for all CMYK files. */
static int cmyk_to_rgb(const struct job *job, const struct st_view *cmyk)
{
    static const struct st_packing packing = {.kind = ST_PACK_CMYK, .bits = 32, .at = {0, 1, 2, 3}};
    const uint32_t width = job->how->region.width;
    const int rc = st_rgb_take(job->out, job->arena, width, job->how->region.height, job->err);
    for (int32_t y = 0; rc == STOKER_OK && y < cmyk->height; y++) {
        uint8_t *row = st_row(cmyk, y);
        for (uint32_t k = 0; k < 4 * width; k++)
            row[k] = 255 - row[k];
        st_to_rgb(&packing, row, 0, width, st_row(job->out, y));
    }
    return rc;
}

/* Everything up to the first row: header, settings, and all scans of a progressive file. *ends: whether
 * the image's data has an end marker. */
static int start(const struct job *job, bool *ends)
{
    struct jpeg_decompress_struct *cinfo = &job->state->cinfo;
    int found;
    st_jpeg_memory_forget(cinfo);
    cinfo->output_scanline = 0; /* used in errors before libjpeg sets it */
    cinfo->src->next_input_byte = job->in.data;
    cinfo->src->bytes_in_buffer = job->in.size;
    do
        found = jpeg_read_header(cinfo, FALSE);
    while (found == JPEG_HEADER_TABLES_ONLY);
    if (found == JPEG_SUSPENDED)
        return st_fail(job->err, STOKER_ECORRUPT, "JPEG: data ends at byte %zu, inside the header",
                       job->in.size);
    *ends = st_jpeg_has_end((struct st_bytes){cinfo->src->next_input_byte, cinfo->src->bytes_in_buffer});
    cinfo->out_color_space = cinfo->num_components == 4 ? JCS_CMYK : JCS_RGB;
    cinfo->scale_num = 1;
    cinfo->scale_denom = job->how->scale;
    if (!jpeg_start_decompress(cinfo))
        return fail_truncated(job);
    const struct st_region *r = &job->how->region;
    if (r->width == 0 || r->height == 0 || r->x >= cinfo->output_width || r->y >= cinfo->output_height ||
        r->width > cinfo->output_width - r->x || r->height > cinfo->output_height - r->y)
        return st_fail(job->err, STOKER_EINVAL,
                       "JPEG: the region %u,%u %ux%u does not lie inside %ux%u pixels", r->x, r->y,
                       r->width, r->height, cinfo->output_width, cinfo->output_height);
    return STOKER_OK;
}

static int decode_rows(const struct job *job)
{
    struct jpeg_decompress_struct *cinfo = &job->state->cinfo;
    const struct st_region *region = &job->how->region;
    JDIMENSION x = region->x;
    bool ends = true;
    int rc = start(job, &ends);
    if (rc < 0)
        return rc;
    if (can_narrow(cinfo))
        narrow(cinfo, region, &x);
    const size_t channels = (size_t)cinfo->output_components, stride = cinfo->output_width * channels;
    uint8_t *rows = st_arena_take(job->arena, (region->height + 1u) * (uint64_t)stride);
    if (!rows)
        return st_fail(job->err, STOKER_ENOMEM, "JPEG: no memory for %u x %u pixels", region->width,
                       region->height);
    if (region->y > 0)
        jpeg_skip_scanlines(cinfo, region->y);
    if (!read_rows(cinfo, rows, stride, region->height))
        return fail_truncated(job);
    /* Truncated: rows below the region may be missing. A bad file is refused whatever part of it is
     * needed. */
    if (!ends && !read_rows(cinfo, rows + region->height * stride, 0,
                            cinfo->output_height - cinfo->output_scanline))
        return fail_truncated(job);
    if (cinfo->output_scanline == cinfo->output_height)
        jpeg_finish_decompress(cinfo); /* for errors after the pixels; the end marker may be missing */
    const struct st_view view = {rows + x * channels, (ptrdiff_t)stride, (int32_t)region->width,
                                 (int32_t)region->height, (int32_t)channels};
    if (channels == 4)
        return cmyk_to_rgb(job, &view);
    *job->out = view;
    return STOKER_OK;
}

/* In addition to our decoder's reasons: why it was not even tried, and what it made of several scans. */
enum { PATH_SCALED = ST_JPEG_REASON_COUNT, PATH_ASKED, PATH_PROGRESSIVE, PATHS };
static_assert((int)PATHS <= (int)ST_PATHS_MAX, "every path has its counter");

static const char *path_name(uint32_t path)
{
    if (path < ST_JPEG_REASON_COUNT)
        return path == ST_JPEG_OURS ? "own decoder" : st_jpeg_reason_name((enum st_jpeg_reason)path);
    return path == PATH_SCALED        ? "reduced size"
           : path == PATH_ASKED       ? "STOKER_JPEG=libjpeg"
           : path == PATH_PROGRESSIVE ? "own decoder, progressive"
                                      : NULL;
}

static void note_path(const struct job *job, uint32_t path)
{
    if (job->how->path)
        *job->how->path = path;
}

/* Tries our own decoder; sets *rc and returns true unless the file is not for it, or damaged. */
static bool decode_own(const struct job *job, int *rc)
{
    struct jpeg_state *state = job->state;
    if (!state->own && !state->by_libjpeg) {
        const char *asked = getenv("STOKER_JPEG");
        state->by_libjpeg = asked && strcmp(asked, "libjpeg") == 0;
        state->own = state->by_libjpeg ? NULL : st_jpeg_new();
    }
    if (job->how->clean)
        *job->how->clean = false;
    if (state->by_libjpeg || job->how->scale != 1) {
        note_path(job, state->by_libjpeg ? PATH_ASKED : PATH_SCALED);
        return false;
    }
    const enum st_jpeg_reason reason =
        state->own ? st_jpeg_decode(state->own, job->in, job->how->region, job->how->clean,
                                    job->how->marks, job->arena, job->out)
                   : ST_JPEG_MEMORY;
    const bool progressive = reason == ST_JPEG_OURS && st_jpeg_was_progressive(state->own);
    note_path(job, progressive ? PATH_PROGRESSIVE : reason);
    *rc = reason == ST_JPEG_MEMORY ? st_fail(job->err, STOKER_ENOMEM, "JPEG: out of memory") : STOKER_OK;
    return reason == ST_JPEG_OURS || reason == ST_JPEG_MEMORY;
}

static int decode(void *opaque, struct st_bytes in, const struct st_decode *how, struct st_arena *arena,
                  struct st_view *out, struct stoker_error *err)
{
    struct jpeg_state *state = opaque;
    const struct job job = {state, in, how, arena, out, err};
    const struct st_arena_mark before = st_arena_mark(arena);
    int rc;
    if (decode_own(&job, &rc))
        return rc;
    st_arena_rewind(arena, before);
    state->memory.image.account = state->memory.tables.account = arena->account;
    state->memory.image.keep = arena->keep;
    if (setjmp(state->failed) == 0) {
        if (!state->created)
            create(state);
        rc = decode_rows(&job);
    } else {
        rc = fail_by_libjpeg(&job);
    }
    if (state->created)
        jpeg_abort_decompress(&state->cinfo);
    else
        jpeg_destroy_decompress(&state->cinfo);
    return rc;
}

/* Our decoder copies the scan and holds one or two bands of coefficients. Of a progressive file it holds
 * those of the region, which is not known here, and a sixteenth of their size beside; libjpeg holds all
 * coefficients of a file with several scans. */
static uint64_t scratch(struct st_bytes in, const struct st_jpeg_info *info)
{
    const uint64_t coefficients =
        st_scratch_for(sizeof(JCOEF) * info->components, info->width, info->height);
    const uint64_t bands = coefficients < BANDS ? coefficients : BANDS;
    return in.size + (info->frame == FRAME_PROGRESSIVE ? coefficients + coefficients / 16 : bands);
}

static int header(void *state, struct st_bytes in, struct st_header *out, struct stoker_error *err)
{
    struct st_jpeg_info info;
    (void)state;
    const int rc = st_jpeg_markers(in, &info, err);
    if (rc < 0)
        return rc;
    *out =
        (struct st_header){info.width, info.height, info.orientation, 1 | 2 | 4 | 8, scratch(in, &info)};
    return STOKER_OK;
}

static void close_state(void *opaque)
{
    struct jpeg_state *state = opaque;
    if (state->created)
        jpeg_destroy_decompress(&state->cinfo);
    st_jpeg_memory_free(&state->memory);
    st_jpeg_free(state->own);
    memset(state, 0, sizeof *state);
}

#define TEXT_OF(macro) TEXT(macro)
#define TEXT(words)    #words

static const char *library(void) { return "libjpeg-turbo " TEXT_OF(LIBJPEG_TURBO_VERSION); }

const struct st_codec st_codec_jpeg = {
    .name = "JPEG",
    .state_size = sizeof(struct jpeg_state),
    .probe = st_jpeg_probe,
    .header = header,
    .decode = decode,
    .close = close_state,
    .based_on = library,
    .path_name = path_name,
};
