/* motion_blur.c - means along a line of random direction, as Albumentations makes them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/functions.h"
#include "op/albu/albu.h"
#include "op/cv/filter.h"
#include "op/geometry/turn.h"

#include <math.h>

static const char name[] = "albu_motion_blur";

enum { SIDE_MOST = 9 }; /* OpenCV filters with larger kernels in another way */

struct motion {
    struct st_list side, angle, direction;
    bool shifted;
};

static const struct st_param params[] = {
    {.name = "side",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct motion, side),
     .min = 3,
     .max = SIDE_MOST,
     .help = "low and high side of the kernel, odd (3, 7)"},
    {.name = "angle",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct motion, angle),
     .min = -1e4,
     .max = 1e4,
     .help = "low and high angle of the line in degrees (0, 360)"},
    {.name = "direction",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct motion, direction),
     .min = -1,
     .max = 1,
     .help = "-1: the line lies behind the pixel, 0: on both sides, 1: before it; low and high (-1, 1)"},
    {.name = "shifted",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct motion, shifted),
     .help = "the line lies beside the pixel, up to a quarter of the kernel's side away"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct motion *m = self;
    int rc = st_plan_bytes(shape, finish, name, err);
    if (rc >= 0)
        rc = st_param_range(&m->side, name, "side", 3, 7, err);
    if (rc >= 0)
        rc = st_albu_odd(&m->side, name, "side", err);
    if (rc >= 0)
        rc = st_param_range(&m->angle, name, "angle", 0, 360, err);
    return rc < 0 ? rc : st_param_range(&m->direction, name, "direction", -1, 1, err);
}

struct line {
    double x, y, across, down; /* a point of it, and where it leads */
    double behind, before;     /* how far */
};

static void mark(uint8_t marks[SIDE_MOST][SIDE_MOST], int32_t side, const struct line *line)
{
    for (int32_t k = 0; k < side; k++) {
        const double at = k == side - 1
                              ? line->before
                              : k * ((line->before + line->behind) / (side - 1)) - line->behind;
        const double x = rint(line->x + line->across * at), y = rint(line->y + line->down * at);
        if (x >= 0 && x < side && y >= 0 && y < side)
            marks[(int)y][(int)x] = 1;
    }
}

/* As many points as the kernel is wide, to the nearest pixels; returns how many these are. */
static int32_t taps_of(struct st_cv_tap taps[SIDE_MOST], int32_t side, const struct line *line)
{
    uint8_t marks[SIDE_MOST][SIDE_MOST] = {{0}};
    int32_t count = 0;
    mark(marks, side, line);
    for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < side; x++)
            if (marks[y][x])
                taps[count++] = (struct st_cv_tap){x - side / 2, y - side / 2, 0};
    if (!count)
        taps[count++] = (struct st_cv_tap){0, 0, 0};
    for (int32_t k = 0; k < count; k++)
        taps[k].weight = 1 / (float)count;
    return count;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct motion *m = self;
    const int32_t side = st_albu_draw_odd(&m->side, rng), half = side / 2;
    const double angle = st_albu_draw(&m->angle, rng) * (3.141592653589793 / 180);
    const double direction = st_albu_draw(&m->direction, rng);
    struct line line = {.x = half, .y = half, .across = st_cos(angle), .down = st_sin(angle)};
    struct st_cv_tap taps[SIDE_MOST];
    struct st_view in, out;
    line.behind = half * (direction > 0 ? 1 - direction : 1);
    line.before = half * (direction < 0 ? 1 + direction : 1);
    if (m->shifted) {
        line.x += st_rng_range(rng, -0.5, 0.5) * half;
        line.y += st_rng_range(rng, -0.5, 0.5) * half;
    }
    if (!st_albu_changes(image))
        return STOKER_OK;
    const int rc = st_image_pixels(image, false, false, &in, err);
    if (rc < 0)
        return rc;
    const int32_t count = taps_of(taps, side, &line);
    struct st_arena *arena = &image->work->arena;
    if (!st_view_take(&out, arena, in.width, in.height, in.channels) ||
        st_cv_weigh(st_cv_filter_rows_for(image->work->level), taps, count, arena, &in, &out) < 0)
        return st_albu_no_memory(name, err);
    st_image_set(image, out, false);
    return STOKER_OK;
}

const struct st_op st_op_albu_motion_blur = {
    .name = name,
    .help = "means along a line of random direction, as Albumentations makes them",
    .self_size = sizeof(struct motion),
    .params = params,
    .plan = plan,
    .run = run,
};
