/* warp_boxes.c - boxes follow rotations, affine and perspective maps
 *
 * The arithmetic is torchvision's: matrices are rounded to float32, and so is each sum of three
 * products. torchvision adds these up in an order that its matrix library chooses; here they are exact
 * before they are rounded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/warp_boxes.h"

#include <math.h>

/* Rows of numbers: of x, of y, and, if the map is a perspective, of what both are divided by. */
struct matrix {
    float row[3][3];
    bool perspective;
    float shift[2]; /* what is subtracted at last */
};

static float row_at(const float row[3], float x, float y)
{
    return (float)((double)row[0] * x + (double)row[1] * y + row[2]);
}

static void move_point(const void *by, const float from[2], float to[2])
{
    const struct matrix *m = by;
    for (int k = 0; k < 2; k++) {
        to[k] = row_at(m->row[k], from[0], from[1]);
        if (m->perspective)
            to[k] /= row_at(m->row[2], from[0], from[1]);
        to[k] -= m->shift[k];
    }
}

/* The upper left of what becomes of the whole image. */
static void shift_whole(struct matrix *m, float width, float height)
{
    const float corner[4][2] = {{0, 0}, {width, 0}, {width, height}, {0, height}};
    float least[2] = {INFINITY, INFINITY};
    for (int k = 0; k < 4; k++) {
        float at[2];
        move_point(m, corner[k], at);
        for (int i = 0; i < 2; i++)
            least[i] = at[i] < least[i] ? at[i] : least[i];
    }
    memcpy(m->shift, least, sizeof least);
}

/* The inverse of the map; false if there is none. */
static bool invert(struct matrix *m, const double *c)
{
    const double by = c[0] * c[4] - c[1] * c[3];
    const double inverse[8] = {c[4] - c[5] * c[7],         -c[1] + c[2] * c[7],
                               c[1] * c[5] - c[2] * c[4],  -c[3] + c[5] * c[6],
                               c[0] - c[2] * c[6],         -c[0] * c[5] + c[2] * c[3],
                               -c[4] * c[6] + c[3] * c[7], -c[0] * c[7] + c[1] * c[6]};
    for (int k = 0; k < 8; k++)
        m->row[k / 3][k % 3] = (float)(inverse[k] / by);
    m->row[2][2] = 1;
    m->perspective = true;
    return by != 0;
}

int st_boxes_warp(struct st_image *image, const struct st_warp *warp, const char *op,
                  struct stoker_error *err)
{
    struct matrix m = {0};
    if (warp->expand && warp->off_centre)
        return st_fail(err, STOKER_EINVAL,
                       "%s: boxes cannot follow expand with a center, where a part of the image is cut "
                       "off: leave one of them out",
                       op);
    if (warp->kind == ST_WARP_PERSPECTIVE && !invert(&m, warp->map))
        return st_fail(err, STOKER_EINVAL, "%s: the map that was drawn for this image has no inverse",
                       op);
    if (warp->kind != ST_WARP_PERSPECTIVE)
        for (int k = 0; k < 6; k++)
            m.row[k / 3][k % 3] = (float)warp->forward[k];
    if (warp->expand)
        shift_whole(&m, (float)st_image_width(image), (float)st_image_height(image));
    st_boxes_map(image->boxes, move_point, &m);
    st_points_map(image->boxes, move_point, &m);
    st_boxes_clamp(image->boxes, warp->width, warp->height);
    st_image_of_boxes(image, image->work, warp->width, warp->height, image->boxes);
    return STOKER_OK;
}
