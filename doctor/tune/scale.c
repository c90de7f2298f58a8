/* scale.c - how the rate of a loader scales with its workers: the universal scalability law, fitted to a
 * few measured points
 *
 * X(n) = one * n / (1 + contention * (n - 1) + crosstalk * n * (n - 1)).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/tune/tune.h"

#include <math.h>

double dr_scale_at(const struct dr_scale *scale, double workers)
{
    return scale->one * workers /
           (1 + scale->contention * (workers - 1) + scale->crosstalk * workers * (workers - 1));
}

/* The best `one` for a given shape, and the error of the points (sum of squares of logarithms). */
static double error_of(struct dr_scale *scale, const struct dr_scale_point *points, uint32_t count)
{
    double mean = 0, squares = 0;
    scale->one = 1;
    for (uint32_t k = 0; k < count; k++)
        mean += log(points[k].rate / dr_scale_at(scale, points[k].workers)) / count;
    scale->one = exp(mean);
    for (uint32_t k = 0; k < count; k++) {
        const double off = log(points[k].rate / dr_scale_at(scale, points[k].workers));
        squares += off * off;
    }
    return squares;
}

/* Searches two parameters with small ranges on a grid, refined twice. With fewer than three points the
 * simpler shapes win, since the grid begins with zeros. */
bool dr_scale_fit(struct dr_scale *out, const struct dr_scale_point *points, uint32_t count)
{
    struct dr_scale best = {0};
    double least = INFINITY, from[2] = {0, 0}, width[2] = {1, 0.1};
    for (uint32_t k = 0; k < count; k++)
        if (!(points[k].rate > 0) || !(points[k].workers >= 1))
            return false;
    if (!count)
        return false;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i <= 20; i++)
            for (int j = 0; j <= 20; j++) {
                struct dr_scale scale = {0, from[0] + width[0] * i / 20, from[1] + width[1] * j / 20};
                const double error = error_of(&scale, points, count);
                if (error < least - 1e-9) {
                    least = error;
                    best = scale;
                }
            }
        for (int axis = 0; axis < 2; axis++) {
            const double center = axis ? best.crosstalk : best.contention;
            width[axis] /= 5;
            from[axis] = fmax(0, center - width[axis] / 2);
        }
    }
    *out = best;
    return true;
}
