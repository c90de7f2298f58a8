/* shuffle_tiles.c - exchanges the tiles of a grid, as Albumentations' RandomGridShuffle does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/split.h"
#include "op/op.h"

enum { SIDE_MAX = 256, SHAPES = 4 };

struct shuffle_tiles {
    int32_t rows, columns;
};

static const char NAME[] = "shuffle_tiles";

static const struct st_param params[] = {
    {.name = "rows",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct shuffle_tiles, rows),
     .def = 3,
     .min = 1,
     .max = SIDE_MAX,
     .help = "of tiles"},
    {.name = "columns",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct shuffle_tiles, columns),
     .def = 3,
     .min = 1,
     .max = SIDE_MAX,
     .help = "of tiles"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)self;
    const int rc = st_plan_bytes(shape, finish, NAME, err);
    return rc < 0 ? rc : st_plan_picture(shape, NAME, err);
}

struct grid {
    int32_t rows, columns, count;
    int32_t x[SIDE_MAX + 1], y[SIDE_MAX + 1];
    int32_t *to; /* for each tile, row by row, the one whose place it takes */
};

static struct st_region tile(const struct grid *g, int32_t k)
{
    const int32_t row = k / g->columns, column = k % g->columns;
    return (struct st_region){(uint32_t)g->x[column], (uint32_t)g->y[row],
                              (uint32_t)(g->x[column + 1] - g->x[column]),
                              (uint32_t)(g->y[row + 1] - g->y[row])};
}

/* Tiles of one size change places; there are at most two lengths along each axis. `some` has room for
 * the numbers of all tiles. */
static void shuffle(const struct grid *g, struct st_rng *rng, int32_t *some)
{
    const uint32_t width = tile(g, 0).width, height = tile(g, 0).height;
    for (uint32_t shape = 0; shape < SHAPES; shape++) {
        int32_t count = 0, next = 0;
        for (int32_t k = 0; k < g->count; k++) {
            const struct st_region t = tile(g, k);
            if ((t.width != width) + 2u * (t.height != height) == shape)
                some[count++] = k;
        }
        for (int32_t k = 0; k < g->count && count; k++) {
            const struct st_region t = tile(g, k);
            if ((t.width != width) + 2u * (t.height != height) != shape)
                continue;
            const int32_t drawn = next + (int32_t)st_rng_below(rng, (uint64_t)(count - next));
            g->to[k] = some[drawn];
            some[drawn] = some[next++];
        }
    }
}

static void move_points(const struct grid *g, struct st_boxes *boxes)
{
    for (uint64_t n = 0; n < boxes->points; n++) {
        float *at = &boxes->point[n * boxes->each];
        for (int32_t k = 0; k < g->count; k++) {
            const struct st_region from = tile(g, k), to = tile(g, g->to[k]);
            if (!(at[0] >= (float)from.x && at[0] < (float)(from.x + from.width) &&
                  at[1] >= (float)from.y && at[1] < (float)(from.y + from.height)))
                continue;
            at[0] = at[0] - (float)from.x + (float)to.x;
            at[1] = at[1] - (float)from.y + (float)to.y;
            break;
        }
    }
}

static int move_pixels(const struct grid *g, struct st_image *image, struct stoker_error *err)
{
    struct st_view in, out;
    const int rc = st_image_pixels(image, false, false, &in, err);
    if (rc < 0)
        return rc;
    if (!st_view_take(&out, &image->work->arena, in.width, in.height, in.channels))
        return st_fail(err, STOKER_ENOMEM, "%s: no memory for an image of %d x %d pixels", NAME,
                       in.width, in.height);
    const size_t channels = (size_t)in.channels;
    for (int32_t k = 0; k < g->count; k++) {
        const struct st_region from = tile(g, k), to = tile(g, g->to[k]);
        for (uint32_t y = 0; y < from.height; y++)
            memcpy(st_row(&out, (int32_t)(to.y + y)) + to.x * channels,
                   st_row(&in, (int32_t)(from.y + y)) + from.x * channels, from.width * channels);
    }
    st_image_set(image, out, false);
    return STOKER_OK;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct shuffle_tiles *s = self;
    struct grid g = {.rows = s->rows, .columns = s->columns, .count = s->rows * s->columns};
    if (image->boxes && image->boxes->count)
        return st_fail(err, STOKER_EINVAL, "%s: boxes cannot follow, since they would be cut apart",
                       NAME);
    g.to = st_arena_take(&image->work->arena, 2 * (uint64_t)g.count * sizeof *g.to);
    if (!g.to)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", NAME);
    st_split_evenly(g.y, g.rows, st_image_height(image), rng);
    st_split_evenly(g.x, g.columns, st_image_width(image), rng);
    shuffle(&g, rng, g.to + g.count);
    if (!image->boxes)
        return move_pixels(&g, image, err);
    move_points(&g, image->boxes);
    return STOKER_OK;
}

const struct st_op st_op_shuffle_tiles = {
    .name = NAME,
    .help = "exchanges the tiles of a grid",
    .self_size = sizeof(struct shuffle_tiles),
    .params = params,
    .plan = plan,
    .run = run,
};
