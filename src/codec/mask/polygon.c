/* polygon.c - polygons as masks, with the pixels that pycocotools gives them
 *
 * The specification is pycocotools: corners are rounded to fifths of a pixel, every fifth along each
 * side is rounded to the nearest, and a column of pixels is entered or left where a side passes its
 * middle, between the third and the fourth fifth. Only those places are computed here: one of each side
 * in each column, instead of all fifths.
 *
 * Rounding is by conversion to int, towards zero, as there. For negative numbers that is another
 * direction, but they are all outside the image.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/mask/polygon.h"

#include <math.h>
#include <stdlib.h>

enum { FIFTHS = 5, MIDDLE = 2 };

struct corner {
    int x, y; /* in fifths of a pixel */
};

/* A side between two corners; x grows in flat ones, y in steep ones. */
struct side {
    struct corner from, to;
    bool steep;
    double slope; /* of the other coordinate */
};

static struct side side_between(struct corner a, struct corner b)
{
    const int dx = abs(b.x - a.x), dy = abs(b.y - a.y);
    const bool steep = dx < dy, turned = steep ? a.y > b.y : a.x > b.x;
    struct side side = {turned ? b : a, turned ? a : b, steep, 0};
    if (steep)
        side.slope = (double)(side.to.x - side.from.x) / dy;
    else if (dx)
        side.slope = (double)(side.to.y - side.from.y) / dx;
    return side;
}

/* The columns whose middle the side passes: *first up to, without, the result. */
static int columns_of(struct corner a, struct corner b, uint32_t width, int *first)
{
    const int left = a.x < b.x ? a.x : b.x, right = a.x < b.x ? b.x : a.x;
    *first = left <= MIDDLE ? 0 : (left - MIDDLE + FIFTHS - 1) / FIFTHS;
    const int end = right <= MIDDLE ? 0 : (right - MIDDLE - 1) / FIFTHS + 1;
    return (uint32_t)end < width ? end : (int)width;
}

/* ---- crossings -------------------------------------------------------------------------------- */

/* The row that begins at or below this height, in fifths. */
static uint32_t row_of(int y, uint32_t height)
{
    const uint32_t row = y <= MIDDLE ? 0 : (uint32_t)(y + MIDDLE) / FIFTHS;
    return row < height ? row : height;
}

/* The smaller y of the two fifths around the middle of a column. */
static int flat_crossing(const struct side *side, int column)
{
    const int step = FIFTHS * column + MIDDLE - side->from.x + (side->slope < 0);
    return (int)(side->from.y + side->slope * step + .5);
}

static bool is_beyond(const struct side *side, int step, int middle)
{
    const int x = (int)(side->from.x + side->slope * step + .5);
    return side->slope > 0 ? x > middle : x <= middle;
}

/* The same where y grows: the last fifth before the middle. Its number is estimated, then made exact. */
static int steep_crossing(const struct side *side, int column)
{
    const int middle = FIFTHS * column + MIDDLE, most = side->to.y - side->from.y;
    int step = (int)((middle + .5 - side->from.x) / side->slope);
    step = step < 0 ? 0 : step > most ? most : step;
    while (step > 0 && is_beyond(side, step, middle))
        step--;
    while (step < most && !is_beyond(side, step + 1, middle))
        step++;
    return side->from.y + step;
}

/* The places where a side makes columns turn. Rows may be the mask's height, below all pixels. */
static void cross(const struct st_view *plane, struct st_turns *turns, struct corner a, struct corner b)
{
    int column;
    const int end = columns_of(a, b, (uint32_t)plane->width, &column);
    if (column >= end)
        return;
    const struct side side = side_between(a, b);
    for (; column < end; column++) {
        const int y = side.steep ? steep_crossing(&side, column) : flat_crossing(&side, column);
        const uint32_t row = row_of(y, (uint32_t)plane->height);
        if (row < turns->box.y + turns->box.height) /* not below the box, with nothing left */
            st_turn(turns, (uint32_t)column, row);
    }
}

/* ---- corners ---------------------------------------------------------------------------------- */

/* The corners in fifths of a pixel, and the first once more. */
static int round_corners(struct corner **out, const struct st_polygon *polygon, struct st_arena *arena,
                         struct stoker_error *err)
{
    struct corner *corners = polygon->corners < SIZE_MAX / 64
                                 ? st_arena_take(arena, (polygon->corners + 1) * sizeof *corners)
                                 : NULL;
    if (!corners)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a polygon of %llu corners",
                       (unsigned long long)polygon->corners);
    for (uint64_t i = 0; i < polygon->corners; i++) {
        const double x = polygon->xy[2 * i], y = polygon->xy[2 * i + 1];
        if (!(fabs(x) <= ST_POLYGON_FURTHEST && fabs(y) <= ST_POLYGON_FURTHEST))
            return st_fail(err, STOKER_ECORRUPT,
                           "corner %llu of the polygon is at (%g, %g); coordinates from %d to %d are "
                           "supported",
                           (unsigned long long)i + 1, x, y, -ST_POLYGON_FURTHEST, ST_POLYGON_FURTHEST);
        corners[i] = (struct corner){(int)(FIFTHS * x + .5), (int)(FIFTHS * y + .5)};
    }
    corners[polygon->corners] = corners[0];
    *out = corners;
    return 0;
}

/* How often the sides cross columns, which is at most about as many times as there are pixels: more
 * would be work out of proportion to what it draws. */
static int check_crossings(const struct corner *corners, uint64_t sides, uint32_t width, uint32_t height,
                           struct stoker_error *err)
{
    enum { ALWAYS = 1 << 16 };
    uint64_t crossings = 0;
    int first;
    for (uint64_t i = 0; i < sides; i++) {
        const int columns = columns_of(corners[i], corners[i + 1], width, &first) - first;
        crossings += columns > 0 ? (uint64_t)columns : 0;
    }
    if (crossings > (uint64_t)width * height + ALWAYS)
        return st_fail(
            err, STOKER_ELIMIT,
            "a polygon of %llu corners crosses columns %llu times in a mask of %u x %u pixels, "
            "more often than is supported",
            (unsigned long long)sides, (unsigned long long)crossings, width, height);
    return 0;
}

/* ---- masks ------------------------------------------------------------------------------------ */

/* The box within which the polygon's columns turn, without its last row, below all pixels. */
static struct st_region box_of(const struct corner *corners, uint64_t count, uint32_t width,
                               uint32_t height)
{
    struct corner least = corners[0], most = corners[0];
    for (uint64_t i = 1; i < count; i++) {
        least.x = corners[i].x < least.x ? corners[i].x : least.x;
        least.y = corners[i].y < least.y ? corners[i].y : least.y;
        most.x = corners[i].x > most.x ? corners[i].x : most.x;
        most.y = corners[i].y > most.y ? corners[i].y : most.y;
    }
    int left;
    const int right = columns_of(least, most, width, &left);
    const uint32_t top = row_of(least.y, height), bottom = row_of(most.y, height);
    return left < right && top < bottom
               ? (struct st_region){(uint32_t)left, top, (uint32_t)(right - left), bottom - top}
               : (struct st_region){0};
}

int st_polygon_draw(const struct st_polygon *polygon, const struct st_view *plane, struct st_brush brush,
                    struct st_turns *turns, struct st_arena *arena, struct stoker_error *err)
{
    const uint32_t width = (uint32_t)plane->width, height = (uint32_t)plane->height;
    struct corner *corners = NULL;
    int rc = st_mask_check_size(width, height, err);
    if (rc || !polygon->corners)
        return rc;
    rc = round_corners(&corners, polygon, arena, err);
    if (!rc)
        rc = check_crossings(corners, polygon->corners, width, height, err);
    if (rc)
        return rc;
    const struct st_region box = box_of(corners, polygon->corners, width, height);
    if (!box.width)
        return 0;
    rc = st_turns_begin(turns, box, arena, err);
    if (rc)
        return rc;
    for (uint64_t i = 0; i < polygon->corners; i++)
        cross(plane, turns, corners[i], corners[i + 1]);
    st_turns_fill(turns, plane, brush);
    return 0;
}
