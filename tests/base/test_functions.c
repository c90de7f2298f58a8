/* Elementary functions: close to libm's, and the same bits on every machine (the digests below are
 * constants).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/functions.h"
#include "tap.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { STEPS = 200000 };

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* How many doubles lie between two of one sign. */
static uint64_t apart(double a, double b)
{
    const uint64_t x = bits_of(a), y = bits_of(b);
    return x > y ? x - y : y - x;
}

struct result {
    uint64_t worst, digest;
    uint32_t equal;
};

static struct result compare(double (*own)(double), double (*libm)(double), double low, double high)
{
    struct result out = {.digest = 14695981039346656037ull};
    for (int k = 0; k <= STEPS; k++) {
        const double x = low + (high - low) * k / STEPS, got = own(x);
        const uint64_t off = apart(got, libm(x));
        out.worst = off > out.worst ? off : out.worst;
        out.equal += off == 0;
        out.digest = (out.digest ^ bits_of(got)) * 1099511628211ull;
    }
    return out;
}

static void check(const char *name, double (*own)(double), double (*libm)(double), double low,
                  double high, uint64_t digest)
{
    const struct result r = compare(own, libm, low, high);
    ok(r.worst <= 2, "%s from %g to %g: at most %llu ulp from libm, equal in %.1f %%", name, low, high,
       (unsigned long long)r.worst, 100.0 * r.equal / (STEPS + 1));
    ok(r.digest == digest, "and the bits that it has everywhere (0x%016llxull)",
       (unsigned long long)r.digest);
}

static void edges(void)
{
    ok(st_ln(1) == 0 && st_ln(0) == -INFINITY && isnan(st_ln(-1)) && isnan(st_ln(NAN)) &&
           isinf(st_ln(INFINITY)) && apart(st_ln(0x1p-1074), log(0x1p-1074)) <= 1,
       "ln at its edges");
    ok(st_exp(0) == 1 && st_exp(-INFINITY) == 0 && isinf(st_exp(INFINITY)) && isinf(st_exp(711)) &&
           isnan(st_exp(NAN)) && st_exp(-800) == 0 && apart(st_exp(-740), exp(-740)) <= 1,
       "exp at its edges");
    ok(st_sin(0) == 0 && st_cos(0) == 1 && isnan(st_sin(INFINITY)) && isnan(st_cos(NAN)) &&
           isnan(st_sin(1e300)) && apart(st_sin(M_PI), sin(M_PI)) <= 1 &&
           apart(st_cos(M_PI_2), cos(M_PI_2)) <= 1 && apart(st_sin(-3 * M_PI), sin(-3 * M_PI)) <= 1,
       "sin and cos at theirs, and next to their zeros");
    ok(st_power(10, 0) == 1 && st_power(0, 0.5) == 0 && apart(st_power(10, 3), 1000) < 16 &&
           apart(st_power(2, -0.5), M_SQRT1_2) < 4,
       "powers");
}

int main(void)
{
    check("ln", st_ln, log, 1e-3, 1, 0xde7f1453271a37d1ull);
    check("ln", st_ln, log, 0.9, 1.1, 0xe5bb7cc4e6d05632ull);
    check("ln", st_ln, log, 1, 1e6, 0x8283ad8d25207574ull);
    check("exp", st_exp, exp, -1, 1, 0x700fe0ae26c8e60cull);
    check("exp", st_exp, exp, -700, 700, 0x6eb98975e34b7084ull);
    check("sin", st_sin, sin, -10, 10, 0x3c0aafa73fa55421ull);
    check("sin", st_sin, sin, 10, 1000, 0xeba0ece0bef106a5ull);
    check("cos", st_cos, cos, -10, 10, 0x52c525c8f72e18bcull);
    check("cos", st_cos, cos, 10, 1000, 0x3effa48e46dcf7dfull);
    edges();
    return done_testing();
}
