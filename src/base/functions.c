/* functions.c - logarithm, exponential, sine and cosine with bit-identical results on every machine
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/functions.h"

#include <math.h>

/* ln 2 in two parts; the first has so few bits that its product with any exponent is exact. */
static const double ln2_high = 0x1.62e42fefa2p-1, ln2_low = 0x1.9ef35793c7673p-41,
                    per_ln2 = 0x1.71547652b82fep+0;
/* pi / 2 in three parts; products of the first two with a whole number up to 2^20 are exact. */
static const double quarter1 = 0x1.921fb544p+0, quarter2 = 0x1.0b4611a6p-34,
                    quarter3 = 0x1.3198a2e037073p-69, per_quarter = 0x1.45f306dc9c883p-1;
static const double quarters_max = 0x1p20;

/* c[0] + c[1] x + c[2] x^2 + ... */
static double polynomial(const double *c, int count, double x)
{
    double sum = c[count - 1];
    for (int k = count - 2; k >= 0; k--)
        sum = sum * x + c[k];
    return sum;
}

/* x = 2^e (1 + f). With s = f / (2 + f), ln(1 + f) = 2 artanh(s) = f - s (f - P), where
 * P = 2 (s^2/3 + s^4/5 + ...): the largest term, f, is exact, and the rest is small. */
double st_ln(double x)
{
    static const double series[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                                    2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
    if (!(x > 0) || isinf(x))
        return x > 0 ? x : x == 0 ? -INFINITY : NAN;
    int exponent;
    double m = frexp(x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    const double f = m - 1, s = f / (2 + f), s2 = s * s;
    const double p = s2 * polynomial(series, sizeof series / sizeof *series, s2);
    return exponent * ln2_high + (f - (s * (f - p) - exponent * ln2_low));
}

/* x = k ln 2 + r, and e^x = 2^k (1 + r + r^2 (1/2 + r/6 + ...)). */
double st_exp(double x)
{
    static const double series[] = {1.0 / 2,          1.0 / 6,        1.0 / 24,        1.0 / 120,
                                    1.0 / 720,        1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                                    1.0 / 3628800,    1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
                                    1.0 / 87178291200};
    if (isnan(x))
        return x;
    if (x > 710 || x < -750)
        return x > 0 ? INFINITY : 0;
    const double k = rint(x * per_ln2), high = x - k * ln2_high, low = k * ln2_low, r = high - low;
    const double more = r * r * polynomial(series, sizeof series / sizeof *series, r);
    return ldexp(1 + (high - (low - more)), (int)k);
}

/* sin and cos of r + tail, |r| up to pi / 4. */
static double sin_near_0(double r, double tail)
{
    static const double series[] = {
        -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
        -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
    const double r2 = r * r;
    return r + (r * r2 * polynomial(series, sizeof series / sizeof *series, r2) + tail * (1 - 0.5 * r2));
}

static double cos_near_0(double r, double tail)
{
    static const double series[] = {
        1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
        1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000};
    const double r2 = r * r, half = 0.5 * r2, most = 1 - half;
    const double rest = r2 * r2 * polynomial(series, sizeof series / sizeof *series, r2) - r * tail;
    return most + (((1 - most) - half) + rest);
}

/* sin(x + quarters pi / 2). */
static double wave(double x, unsigned quarters)
{
    const double k = rint(x * per_quarter);
    if (!(fabs(k) <= quarters_max))
        return NAN;
    const double first = x - k * quarter1, second = k * quarter2, r1 = first - second;
    const double lost = k * quarter3 - ((first - r1) - second);
    const double r = r1 - lost, tail = (r1 - r) - lost;
    switch ((quarters + (unsigned)(int)k) % 4) {
    case 0:
        return sin_near_0(r, tail);
    case 1:
        return cos_near_0(r, tail);
    case 2:
        return -sin_near_0(r, tail);
    default:
        return -cos_near_0(r, tail);
    }
}

double st_sin(double x) { return wave(x, 0); }

double st_cos(double x) { return wave(x, 1); }

double st_power(double base, double exponent)
{
    if (exponent == 0 || base == 1)
        return 1;
    return st_exp(exponent * st_ln(base));
}
