/* clahe.c - makes values of tiles about equally frequent, as Albumentations does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/clahe.h"
#include "op/albu/albu.h"
#include "op/cv/lab.h"
#include "op/geometry/turn.h"

static const char name[] = "albu_clahe";

struct clahe {
    struct st_list clip, tiles;
    struct st_cv_lab lab;
};

static const struct st_param params[] = {
    {.name = "clip",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct clahe, clip),
     .min = 0,
     .max = 1e6,
     .help = "how much more frequent than on average a value may be, low and high (1, 4)"},
    {.name = "tiles",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct clahe, tiles),
     .min = 1,
     .max = ST_CV_TILES_MOST,
     .help = "how many there are across and down (8, 8)"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct clahe *c = self;
    if (c->tiles.count == 0)
        c->tiles = (struct st_list){.count = 2, .value = {8, 8}};
    int rc = st_plan_bytes(shape, finish, name, err);
    if (rc >= 0)
        rc = st_param_range(&c->clip, name, "clip", 1, 4, err);
    if (rc >= 0 && c->tiles.count != 2)
        rc = st_fail(err, STOKER_EINVAL, "%s: tiles must be two numbers, not %u", name, c->tiles.count);
    if (rc >= 0)
        rc = st_albu_whole(&c->tiles, name, "tiles", err);
    if (rc >= 0)
        st_cv_lab_make(&c->lab);
    return rc;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct clahe *c = self;
    const double clip = st_albu_draw(&c->clip, rng);
    struct st_view pixels;
    if (!st_albu_changes(image))
        return STOKER_OK;
    int rc = st_image_pixels(image, true, false, &pixels, err);
    if (rc < 0)
        return rc;
    const int64_t more = ST_CV_TILES_MOST; /* pixels, at most, that are added to a side */
    if ((pixels.width + more) * (pixels.height + more) > INT32_MAX)
        return st_fail(err, STOKER_ELIMIT, "%s: %d x %d pixels are too many to be counted", name,
                       pixels.width, pixels.height);
    const bool coloured = pixels.channels == 3; /* then L of Lab is changed */
    for (int32_t y = 0; coloured && y < pixels.height; y++)
        st_cv_to_lab(&c->lab, st_row(&pixels, y), (size_t)pixels.width);
    rc = st_cv_clahe(&pixels, clip, (int32_t)c->tiles.value[0], (int32_t)c->tiles.value[1],
                     &image->work->arena);
    if (rc < 0)
        return st_albu_no_memory(name, err);
    for (int32_t y = 0; coloured && y < pixels.height; y++)
        st_cv_from_lab(&c->lab, st_row(&pixels, y), (size_t)pixels.width);
    return STOKER_OK;
}

const struct st_op st_op_albu_clahe = {
    .name = name,
    .help = "makes values of tiles about equally frequent, as Albumentations' CLAHE does",
    .self_size = sizeof(struct clahe),
    .params = params,
    .plan = plan,
    .run = run,
};
