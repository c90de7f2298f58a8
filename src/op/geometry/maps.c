/* maps.c - the maps of rotations, affine and perspective transforms, from the numbers that were drawn
 *
 * The order of operations is that of Pillow and torchvision, because the last bit of a number may decide
 * which pixel is nearest. Sine and cosine are our own, within one ulp of theirs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/maps.h"

#include "base/functions.h"

#include <math.h>
#include <string.h>

static double radians(double degrees) { return degrees * (3.141592653589793 / 180.0); }

static void set(struct st_warp *warp, enum st_warp_kind kind, int32_t width, int32_t height)
{
    warp->kind = kind;
    warp->turn = (struct st_turn){0};
    warp->width = width;
    warp->height = height;
    memset(warp->map, 0, sizeof warp->map);
    memset(warp->forward, 0, sizeof warp->forward);
    warp->expand = warp->off_centre = false;
}

/* ---- affine ------------------------------------------------------------------------------------- */

/* Shear along y, then x, and turn. */
struct turned {
    double a, b, c, d;
};

static struct turned turned_by(const struct st_affine *affine)
{
    const double turned = radians(affine->angle), sx = radians(affine->shear[0]),
                 sy = radians(affine->shear[1]);
    const double cos_sy = st_cos(sy), tan_sx = st_sin(sx) / st_cos(sx);
    const double a = st_cos(turned - sy) / cos_sy, b = -(a * tan_sx + st_sin(turned));
    const double c = st_sin(turned - sy) / cos_sy, d = st_cos(turned) - c * tan_sx;
    return (struct turned){a, b, c, d};
}

static double centre_at(const double *centre, int k, int32_t length)
{
    return centre ? centre[k] : length * 0.5;
}

/* Shear, scale and turn around the centre, then move. */
static void set_forward(struct st_warp *warp, const struct st_affine *affine, const double *centre,
                        int32_t width, int32_t height)
{
    const struct turned by = turned_by(affine);
    const double x = centre_at(centre, 0, width), y = centre_at(centre, 1, height);
    double *forward = warp->forward;
    forward[0] = by.a * affine->scale;
    forward[1] = by.b * affine->scale;
    forward[3] = by.c * affine->scale;
    forward[4] = by.d * affine->scale;
    forward[2] = x + affine->move[0] - forward[0] * x - forward[1] * y;
    forward[5] = y + affine->move[1] - forward[3] * x - forward[4] * y;
}

/* The inverse of that. */
void st_warp_affine(struct st_warp *warp, const struct st_affine *affine, const double *centre,
                    int32_t width, int32_t height)
{
    const struct turned by = turned_by(affine);
    const double x = centre_at(centre, 0, width), y = centre_at(centre, 1, height);
    const double to_x = x + affine->move[0], to_y = y + affine->move[1];
    set(warp, ST_WARP_AFFINE, width, height);
    double *map = warp->map;
    map[0] = by.d / affine->scale;
    map[1] = -by.b / affine->scale;
    map[3] = -by.c / affine->scale;
    map[4] = by.a / affine->scale;
    map[2] = x - map[0] * to_x - map[1] * to_y;
    map[5] = y - map[3] * to_x - map[4] * to_y;
    set_forward(warp, affine, centre, width, height);
}

/* ---- rotation ----------------------------------------------------------------------------------- */

/* Rounds a number from -1 to 1 to 15 decimals, halves to even, like Python. */
static double decimals15(double x)
{
    const double many = x * 1e15, lost = fma(x, 1e15, -many);
    const double whole = rint(many), rest = many - whole;
    if (rest == 0.5 && lost > 0)
        return (whole + 1) / 1e15;
    if (rest == -0.5 && lost < 0)
        return (whole - 1) / 1e15;
    return whole / 1e15;
}

static double apply(const double *row, double x, double y) { return row[0] * x + row[1] * y + row[2]; }

/* Degrees from 0 to 360, like Python's %. */
static double around(double angle)
{
    const double rest = fmod(angle, 360);
    return rest < 0 ? rest + 360 : rest == 0 ? 0 : rest;
}

/* Multiples of a right angle only move whole pixels. */
static bool turn_by(struct st_warp *warp, double angle, bool expand, int32_t width, int32_t height)
{
    const bool swaps = angle == 90 || angle == 270;
    if (angle != 0 && angle != 180 && !(swaps && (expand || width == height)))
        return false;
    set(warp, ST_WARP_TURN, swaps ? height : width, swaps ? width : height);
    warp->turn = (struct st_turn){
        .transpose = swaps, .mirror = angle == 180 || angle == 270, .flip = angle == 180 || angle == 90};
    return true;
}

/* The extent of the four corners along one axis, in whole pixels. */
static double extent(const double *row, double width, double height)
{
    const double x[4] = {0, width, width, 0}, y[4] = {0, 0, height, height};
    double low = INFINITY, high = -INFINITY;
    for (int k = 0; k < 4; k++) {
        const double at = apply(row, x[k], y[k]);
        low = fmin(low, at);
        high = fmax(high, at);
    }
    return ceil(high) - floor(low);
}

/* Makes the result as large as the turned image. */
static int enlarge(struct st_warp *warp, const char *op, struct stoker_error *err)
{
    double *map = warp->map;
    const double width = extent(map, warp->width, warp->height);
    const double height = extent(map + 3, warp->width, warp->height);
    if (!(width >= 1 && width <= INT32_MAX && height >= 1 && height <= INT32_MAX))
        return st_fail(err, STOKER_EINVAL, "%s: a turned image of %g x %g pixels is not possible", op,
                       width, height);
    const double x = -(width - warp->width) / 2, y = -(height - warp->height) / 2;
    const double moved = apply(map, x, y);
    map[5] = apply(map + 3, x, y);
    map[2] = moved;
    warp->width = (int32_t)width;
    warp->height = (int32_t)height;
    return STOKER_OK;
}

static int set_rotation(struct st_warp *warp, double angle, bool expand, const double *centre,
                        int32_t width, int32_t height, const char *op, struct stoker_error *err)
{
    angle = around(angle);
    if (!centre && turn_by(warp, angle, expand, width, height))
        return STOKER_OK;
    const double x = centre ? centre[0] : width / 2.0, y = centre ? centre[1] : height / 2.0;
    const double turned = -radians(angle);
    const double c = decimals15(st_cos(turned)), s = decimals15(st_sin(turned));
    set(warp, ST_WARP_AFFINE, width, height);
    double *map = warp->map;
    map[0] = c;
    map[1] = s;
    map[3] = -s;
    map[4] = c;
    const double moved = apply(map, -x, -y);
    map[5] = apply(map + 3, -x, -y) + y;
    map[2] = moved + x;
    return expand ? enlarge(warp, op, err) : STOKER_OK;
}

int st_warp_rotation(struct st_warp *warp, double angle, bool expand, const double *centre,
                     int32_t width, int32_t height, const char *op, struct stoker_error *err)
{
    const struct st_affine affine = {.angle = -angle, .scale = 1};
    const int rc = set_rotation(warp, angle, expand, centre, width, height, op, err);
    set_forward(warp, &affine, centre, width, height);
    warp->expand = expand;
    warp->off_centre = centre != NULL;
    return rc;
}

/* ---- perspective -------------------------------------------------------------------------------- */

enum { UNKNOWNS = 8 };

/* Swaps the row with the largest number in column `k` to row `k`; false if all are 0. */
static bool bring_largest(double m[UNKNOWNS][UNKNOWNS + 1], int k)
{
    int best = k;
    for (int row = k + 1; row < UNKNOWNS; row++)
        best = fabs(m[row][k]) > fabs(m[best][k]) ? row : best;
    for (int column = 0; column <= UNKNOWNS; column++) {
        const double kept = m[k][column];
        m[k][column] = m[best][column];
        m[best][column] = kept;
    }
    return m[k][k] != 0;
}

/* Gaussian elimination; the last column is the right-hand side. The result is rounded to floats, as
 * torchvision rounds it. */
static bool solve(double m[UNKNOWNS][UNKNOWNS + 1], float *out)
{
    for (int k = 0; k < UNKNOWNS; k++) {
        if (!bring_largest(m, k))
            return false;
        for (int row = k + 1; row < UNKNOWNS; row++) {
            const double times = m[row][k] / m[k][k];
            for (int column = k; column <= UNKNOWNS; column++)
                m[row][column] -= times * m[k][column];
        }
    }
    for (int k = UNKNOWNS - 1; k >= 0; k--) {
        double *sum = &m[k][UNKNOWNS];
        for (int column = k + 1; column < UNKNOWNS; column++)
            *sum -= m[k][column] * m[column][UNKNOWNS];
        *sum /= m[k][k];
        out[k] = (float)*sum;
    }
    return true;
}

bool st_warp_perspective(struct st_warp *warp, double corners[4][2], int32_t width, int32_t height)
{
    const double right = width - 1, bottom = height - 1;
    const double from[4][2] = {{0, 0}, {right, 0}, {right, bottom}, {0, bottom}};
    double m[UNKNOWNS][UNKNOWNS + 1] = {0};
    for (int k = 0; k < 4; k++) {
        const double x = corners[k][0], y = corners[k][1], u = from[k][0], v = from[k][1];
        const double rows[2][UNKNOWNS + 1] = {{x, y, 1, 0, 0, 0, -u * x, -u * y, u},
                                              {0, 0, 0, x, y, 1, -v * x, -v * y, v}};
        memcpy(m + 2 * k, rows, sizeof rows);
    }
    set(warp, ST_WARP_PERSPECTIVE, width, height);
    float out[UNKNOWNS] = {0};
    bool finite = solve(m, out);
    for (int k = 0; k < UNKNOWNS; k++) {
        warp->map[k] = out[k];
        finite = finite && isfinite(out[k]);
    }
    return finite;
}
