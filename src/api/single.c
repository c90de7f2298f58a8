/* single.c - single images through a pipeline, outside of any loader
 *
 * What a thread needs to work with is taken from a few idle ones, without a lock: a process may be
 * forked while another thread is inside.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/sized.h"
#include "codec/jpeg/baseline.h"
#include "op/colour/tables.h"
#include "op/filter/box_blur.h"
#include "op/geometry/warp.h"
#include "pipe/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    IDLE = 4,        /* kept for the next image */
    KEEP = 32 << 20, /* bytes of scratch memory that each of them keeps at most */
    PIXELS_MAX = 178956970,
};

struct stoker_single {
    struct stoker_pipeline *pipe;
    struct stoker_single_options opt;
    struct st_finish finish;
    _Atomic(struct st_work *) idle[IDLE];
};

ST_SIZED(options, stoker_single_options, pixel_limit);
ST_SIZED(pictures, stoker_picture, edit_count);

static const struct stoker_single_options defaults = {
    .size = sizeof defaults, .layout = STOKER_LAYOUT_NCHW, .pillow = 13, .pixel_limit = PIXELS_MAX};

void stoker_single_options_init(struct stoker_single_options *opt, size_t size)
{
    st_sized_init(&options, &defaults, opt, size);
}

static void work_free(struct st_work *work)
{
    if (!work)
        return;
    st_decoder_close(&work->decoder);
    st_arena_free(&work->arena);
    free(work);
}

static struct st_work *take_work(struct stoker_single *single)
{
    for (uint32_t k = 0; k < IDLE; k++) {
        struct st_work *work = atomic_exchange_explicit(&single->idle[k], NULL, memory_order_acquire);
        if (work)
            return work;
    }
    struct st_work *work = st_calloc(1, sizeof *work);
    if (!work)
        return NULL;
    st_work_equip(work);
    work->pillow = single->opt.pillow;
    if (single->opt.fused)
        work->colour = &st_colour_rows_fused;
    work->decoder.pixel_limit = single->opt.pixel_limit;
    work->arena.keep = KEEP;
    return work;
}

static void give_work(struct stoker_single *single, struct st_work *work)
{
    st_arena_reset(&work->arena);
    for (uint32_t k = 0; k < IDLE; k++) {
        struct st_work *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&single->idle[k], &none, work, memory_order_release,
                                                    memory_order_relaxed))
            return;
    }
    work_free(work);
}

int stoker_single_open(struct stoker_single **out, struct stoker_pipeline *pipe,
                       const struct stoker_single_options *given, struct stoker_error *err)
{
    struct stoker_single_options opt = defaults;
    if (!out || !pipe)
        return st_fail(err, STOKER_EINVAL, "stoker_single_open: out and pipe must not be NULL");
    *out = NULL;
    int rc = given ? st_sized_take(&options, &opt, given, err) : STOKER_OK;
    if (rc)
        return rc;
    if (pipe->sounds)
        return st_fail(err, STOKER_EINVAL, "stoker_single_open: the pipeline is one for sounds");
    if (pipe->shape.views)
        return st_fail(err, STOKER_EINVAL, "stoker_single_open: the pipeline makes several views");
    if (opt.layout != STOKER_LAYOUT_NCHW && opt.layout != STOKER_LAYOUT_NHWC)
        return st_fail(err, STOKER_EINVAL, "stoker_single_open: layout %d is neither NCHW nor NHWC",
                       (int)opt.layout);
    if (opt.pillow != 12 && opt.pillow != 13)
        return st_fail(err, STOKER_EINVAL, "stoker_single_open: pillow=%u is neither 12 nor 13",
                       opt.pillow);
    struct stoker_single *single = st_calloc(1, sizeof *single);
    if (!single)
        return st_fail(err, STOKER_ENOMEM, "stoker_single_open: out of memory");
    single->opt = opt;
    rc = st_finish_init(&single->finish, &pipe->finish, pipe->finish.dtype, opt.layout,
                        pipe->shape.channels, err);
    if (rc) {
        free(single);
        return rc;
    }
    single->pipe = st_pipeline_hold(pipe);
    *out = single;
    return STOKER_OK;
}

void stoker_single_close(struct stoker_single *single)
{
    if (!single)
        return;
    for (uint32_t k = 0; k < IDLE; k++)
        work_free(single->idle[k]);
    st_pipeline_drop(single->pipe);
    free(single);
}

/* The finished image's shape; false where its size is too large to count. */
static bool describe(const struct st_finish *finish, const struct st_image *image,
                     struct stoker_tensor *out, uint64_t *bytes)
{
    const int64_t width = st_image_width(image), height = st_image_height(image),
                  channels = finish->channels;
    *out = (struct stoker_tensor){.dtype = finish->dtype, .ndim = 3, .shape = {channels, height, width}};
    if (finish->layout == STOKER_LAYOUT_NHWC) {
        out->shape[0] = height;
        out->shape[1] = width;
        out->shape[2] = channels;
    }
    out->stride[0] = out->shape[1] * out->shape[2];
    out->stride[1] = out->shape[2];
    out->stride[2] = 1;
    return ST_PRODUCT(bytes, (uint64_t)width, (uint64_t)height, (uint64_t)channels, finish->element);
}

static int open_picture(struct st_work *work, const struct stoker_picture *picture,
                        struct st_image *image, struct stoker_error *err)
{
    const struct st_bytes bytes = {picture->data, picture->bytes};
    int rc = picture->channels ? st_image_raw(image, work, bytes, picture->width, picture->height,
                                              picture->channels, false, err)
                               : st_image_open(image, work, bytes, false, err);
    if (!rc && picture->crop_width)
        rc = st_image_crop(
            image, (struct st_region){picture->x, picture->y, picture->crop_width, picture->crop_height},
            err);
    return rc;
}

#define SAME(name) ((int)STOKER_FILTER_##name == (int)ST_FILTER_##name)
_Static_assert(SAME(NEAREST) && SAME(BOX) && SAME(BILINEAR) && SAME(HAMMING) && SAME(BICUBIC) &&
                   SAME(LANCZOS) && ST_FILTERS == 6,
               "the public filters are the resize's");

static int resize(struct st_image *image, const struct stoker_edit *edit, struct stoker_error *err)
{
    if ((uint32_t)edit->filter >= ST_FILTERS || edit->width > INT32_MAX || edit->height > INT32_MAX)
        return st_fail(err, STOKER_EINVAL, "cannot resize to %u x %u pixels with filter %d", edit->width,
                       edit->height, (int)edit->filter);
    return st_image_resize(image, (int32_t)edit->width, (int32_t)edit->height,
                           (enum st_filter)edit->filter, err);
}

static int change_colour(struct st_image *image, const struct stoker_edit *edit,
                         enum st_pending_kind kind, double low, double high, struct stoker_error *err)
{
    if (!(edit->factor >= low && edit->factor <= high))
        return st_fail(err, STOKER_EINVAL, "a factor of %g is not between %g and %g", edit->factor, low,
                       high);
    return st_image_do(image, (struct st_pending){.kind = kind, .factor = (float)edit->factor}, err);
}

static int solarize(struct st_image *image, const struct stoker_edit *edit, struct stoker_error *err)
{
    if (isnan(edit->factor))
        return st_fail(err, STOKER_EINVAL, "a threshold must be a number");
    return st_image_do(image,
                       (struct st_pending){.kind = ST_PENDING_SOLARIZE,
                                           .level = st_solarize_level(edit->factor)},
                       err);
}

static int posterize(struct st_image *image, const struct stoker_edit *edit, struct stoker_error *err)
{
    if (!(edit->factor >= 1 && edit->factor <= 8) || edit->factor != floor(edit->factor))
        return st_fail(err, STOKER_EINVAL, "cannot keep %g bits of 8", edit->factor);
    return st_image_do(image,
                       (struct st_pending){.kind = ST_PENDING_POSTERIZE,
                                           .level = st_posterize_mask((int32_t)edit->factor)},
                       err);
}

static int permute(struct st_image *image, const struct stoker_edit *edit, struct stoker_error *err)
{
    const uint32_t r = edit->x, g = edit->y, b = edit->width;
    if (r > 2 || g > 2 || b > 2 || r == g || g == b || b == r)
        return st_fail(err, STOKER_EINVAL, "channels %u, %u and %u are not 0, 1 and 2 in some order", r,
                       g, b);
    const struct st_pending op = {.kind = ST_PENDING_PERMUTE, .level = r | g << 4 | b << 8};
    return st_image_do(image, op, err);
}

static int warp(struct st_image *image, const struct stoker_edit *edit, enum st_warp_kind kind,
                struct stoker_error *err)
{
    struct st_warp job = {.kind = kind, .filter = (enum st_filter)edit->filter};
    if (edit->width > INT32_MAX || edit->height > INT32_MAX ||
        (job.filter != ST_FILTER_NEAREST && job.filter != ST_FILTER_BILINEAR &&
         job.filter != ST_FILTER_BICUBIC))
        return st_fail(err, STOKER_EINVAL, "cannot map to %u x %u pixels with filter %d", edit->width,
                       edit->height, (int)edit->filter);
    job.width = (int32_t)edit->width;
    job.height = (int32_t)edit->height;
    memcpy(job.map, edit->map, sizeof job.map);
    memcpy(job.fill, edit->fill, sizeof job.fill);
    return st_image_warp(image, &job, "a map", err);
}

/* Blurring and tables treat mirrored images alike, so these stay mirrored later. */
static int blur(struct st_image *image, const struct stoker_edit *edit, struct stoker_error *err)
{
    const bool gaussian = edit->kind == STOKER_EDIT_GAUSSIAN_BLUR;
    const bool fused = image->work->colour == &st_colour_rows_fused;
    float radius[2];
    struct st_view pixels;
    for (uint32_t k = 0; k < 2; k++) {
        if (!(edit->map[k] >= 0 && edit->map[k] <= (double)ST_BOX_RADIUS_MAX))
            return st_fail(err, STOKER_EINVAL, "cannot blur by %g: a radius is from 0 to %g",
                           edit->map[k], (double)ST_BOX_RADIUS_MAX);
        radius[k] = (float)edit->map[k];
        if (gaussian)
            radius[k] = st_box_gaussian_radius(radius[k], fused);
        if (radius[k] < 0)
            return st_fail(err, STOKER_EUNSUPPORTED, "builds of Pillow differ in what they blur by %g",
                           edit->map[k]);
    }
    const int rc = st_image_pixels(image, true, true, &pixels, err);
    if (rc < 0)
        return rc;
    if (st_box_blur(st_colour_rows_of(image->work), radius[0], radius[1],
                    gaussian ? ST_BOX_GAUSSIAN_PASSES : 1, &image->work->arena, &pixels) < 0)
        return st_fail(err, STOKER_ENOMEM, "no memory to blur %d x %d pixels", pixels.width,
                       pixels.height);
    return STOKER_OK;
}

static int replace(struct st_image *image, const struct stoker_edit *edit, struct stoker_error *err)
{
    struct st_tables tables;
    struct st_view pixels;
    if (!edit->table)
        return st_fail(err, STOKER_EINVAL, "an edit that replaces values has no table");
    const int rc = st_image_pixels(image, true, true, &pixels, err);
    if (rc < 0)
        return rc;
    st_tables_begin(&tables, st_colour_rows_of(image->work), &pixels);
    st_tables_replace(&tables, edit->table);
    st_tables_end(&tables);
    return STOKER_OK;
}

static int apply(struct st_image *image, const struct stoker_edit *edit, struct stoker_error *err)
{
    const double most = 1e6; /* as color_jitter allows */
    switch (edit->kind) {
    case STOKER_EDIT_CROP:
        return st_image_crop(image, (struct st_region){edit->x, edit->y, edit->width, edit->height},
                             err);
    case STOKER_EDIT_RESIZE:
        return resize(image, edit, err);
    case STOKER_EDIT_MIRROR:
        st_image_mirror(image);
        return STOKER_OK;
    case STOKER_EDIT_FLIP:
        st_image_flip(image);
        return STOKER_OK;
    case STOKER_EDIT_BRIGHTNESS:
        return change_colour(image, edit, ST_PENDING_BRIGHTNESS, 0, most, err);
    case STOKER_EDIT_CONTRAST:
        return change_colour(image, edit, ST_PENDING_CONTRAST, 0, most, err);
    case STOKER_EDIT_SATURATION:
        return change_colour(image, edit, ST_PENDING_SATURATION, 0, most, err);
    case STOKER_EDIT_HUE:
        return change_colour(image, edit, ST_PENDING_HUE, -0.5, 0.5, err);
    case STOKER_EDIT_GREY:
        return st_image_do(image, (struct st_pending){.kind = ST_PENDING_GREY}, err);
    case STOKER_EDIT_SHARPNESS:
        return change_colour(image, edit, ST_PENDING_SHARPNESS, -most, most, err);
    case STOKER_EDIT_SOLARIZE:
        return solarize(image, edit, err);
    case STOKER_EDIT_POSTERIZE:
        return posterize(image, edit, err);
    case STOKER_EDIT_AUTOCONTRAST:
        return st_image_do(image, (struct st_pending){.kind = ST_PENDING_AUTOCONTRAST}, err);
    case STOKER_EDIT_EQUALIZE:
        return st_image_do(image, (struct st_pending){.kind = ST_PENDING_EQUALIZE}, err);
    case STOKER_EDIT_PERMUTE:
        return permute(image, edit, err);
    case STOKER_EDIT_AFFINE:
        return warp(image, edit, ST_WARP_AFFINE, err);
    case STOKER_EDIT_PERSPECTIVE:
        return warp(image, edit, ST_WARP_PERSPECTIVE, err);
    case STOKER_EDIT_BOX_BLUR:
    case STOKER_EDIT_GAUSSIAN_BLUR:
        return blur(image, edit, err);
    case STOKER_EDIT_POINT:
        return replace(image, edit, err);
    }
    return st_fail(err, STOKER_EINVAL, "there is no edit of kind %d", (int)edit->kind);
}

/* Where the caller wants the result; memory NULL: in memory of its own. */
struct into {
    void *memory;
    size_t bytes;
};

static int place_result(const struct into *into, const struct stoker_tensor *shape, uint64_t bytes,
                        void **memory, struct stoker_error *err)
{
    if (into->memory && into->bytes != bytes)
        return st_fail(err, STOKER_EINVAL, "the result has %llu bytes, and the memory for it %zu",
                       (unsigned long long)bytes, into->bytes);
    *memory = into->memory ? into->memory : st_alloc_aligned(bytes);
    return *memory ? STOKER_OK
                   : st_fail(err, STOKER_ENOMEM, "no memory for an image of %lld x %lld x %lld",
                             (long long)shape->shape[0], (long long)shape->shape[1],
                             (long long)shape->shape[2]);
}

static int make(const struct stoker_single *single, struct st_work *work,
                const struct stoker_picture *picture, const struct st_rng_key *rng_key,
                const struct into *into, struct stoker_tensor *out, struct stoker_error *err)
{
    struct st_image image;
    struct st_erases erases;
    uint64_t bytes;
    int rc = open_picture(work, picture, &image, err);
    for (size_t k = 0; !rc && k < picture->edit_count; k++)
        rc = apply(&image, &picture->edits[k], err);
    if (!rc)
        rc = st_steps_run(&single->pipe->steps, rng_key, &image, err);
    if (!rc)
        rc = st_steps_erases(single->pipe, &single->finish, rng_key, &image, &erases, err);
    if (rc)
        return rc;
    struct st_place place = {NULL, st_image_width(&image), st_image_height(&image)};
    if (!describe(&single->finish, &image, out, &bytes))
        return st_fail(err, STOKER_ENOMEM, "no memory for an image of %d x %d", place.width,
                       place.height);
    rc = place_result(into, out, bytes, &place.data, err);
    if (!rc)
        rc = st_steps_finish(&image, &single->finish, erases, &place, err);
    if (!rc)
        out->data = place.data;
    else if (!into->memory)
        free(place.data);
    return rc;
}

static int run(struct stoker_single *single, const struct stoker_picture *given,
               const struct st_rng_key *rng_key, const struct into *into, struct stoker_tensor *out,
               struct stoker_error *err)
{
    struct stoker_picture picture = {0};
    if (!single || !given || !out)
        return st_fail(err, STOKER_EINVAL,
                       "stoker_single_run: single, picture and out must not be NULL");
    *out = (struct stoker_tensor){0};
    int rc = st_sized_take(&pictures, &picture, given, err);
    if (rc)
        return rc;
    if (!picture.data && picture.bytes)
        return st_fail(err, STOKER_EINVAL, "stoker_single_run: %zu bytes, but data is NULL",
                       picture.bytes);
    if (!picture.edits && picture.edit_count)
        return st_fail(err, STOKER_EINVAL, "stoker_single_run: %zu edits, but edits is NULL",
                       picture.edit_count);
    struct st_work *work = take_work(single);
    if (!work)
        return st_fail(err, STOKER_ENOMEM, "stoker_single_run: out of memory");
    rc = make(single, work, &picture, rng_key, into, out, err);
    give_work(single, work);
    return rc < 0 && picture.name ? st_fail_in(err, rc, picture.name) : rc;
}

int stoker_single_run(struct stoker_single *single, const struct stoker_picture *picture, uint64_t seed,
                      uint64_t epoch, uint64_t sample, struct stoker_tensor *out,
                      struct stoker_error *err)
{
    const struct st_rng_key rng_key = {.seed = seed, .epoch = epoch, .key = sample};
    return run(single, picture, &rng_key, &(struct into){0}, out, err);
}

int stoker_single_run_into(struct stoker_single *single, const struct stoker_picture *picture,
                           uint64_t seed, uint64_t epoch, uint64_t sample, void *memory, size_t bytes,
                           struct stoker_tensor *out, struct stoker_error *err)
{
    const struct st_rng_key rng_key = {.seed = seed, .epoch = epoch, .key = sample};
    if (!memory)
        return st_fail(err, STOKER_EINVAL, "stoker_single_run_into: memory must not be NULL");
    return run(single, picture, &rng_key, &(struct into){memory, bytes}, out, err);
}

bool stoker_jpeg_is_regular(const void *data, size_t size, uint32_t *width, uint32_t *height,
                            uint32_t *components)
{
    return data && width && height && components &&
           st_jpeg_is_regular((struct st_bytes){data, size}, width, height, components);
}
