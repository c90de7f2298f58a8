/* What ops on whole batches draw is a function of its arguments, and follows Beta(alpha, alpha). */
#include "tap.h"

#include <math.h>
#include <stoker/stoker.h>
#include <string.h>

static bool differ(struct stoker_mix a, struct stoker_mix b) { return memcmp(&a, &b, sizeof a) != 0; }

static void function_of_its_arguments(void)
{
    const struct stoker_mix base = stoker_mix_draw(1, 2, 3, 4, 0.5);
    ok(!differ(base, stoker_mix_draw(1, 2, 3, 4, 0.5)), "the same arguments draw the same");
    ok(differ(base, stoker_mix_draw(0, 2, 3, 4, 0.5)), "another seed draws otherwise");
    ok(differ(base, stoker_mix_draw(1, 0, 3, 4, 0.5)), "another epoch draws otherwise");
    ok(differ(base, stoker_mix_draw(1, 2, 0, 4, 0.5)), "another batch draws otherwise");
    ok(differ(base, stoker_mix_draw(1, 2, 3, 0, 0.5)), "another op draws otherwise");
    ok(base.choice == stoker_mix_draw(1, 2, 3, 4, 7).choice, "the choice does not depend on alpha");
}

static void follows_beta(double alpha)
{
    enum { DRAWS = 20000 };
    double sum = 0, squares = 0;
    bool inside = true;
    for (uint64_t batch = 0; batch < DRAWS; batch++) {
        const struct stoker_mix mix = stoker_mix_draw(9, 1, batch, 0, alpha);
        inside = inside && mix.lambda >= 0 && mix.lambda <= 1 && mix.x >= 0 && mix.x < 1 && mix.y >= 0 &&
                 mix.y < 1 && mix.choice >= 0 && mix.choice < 1;
        sum += mix.lambda;
        squares += mix.lambda * mix.lambda;
    }
    const double mean = sum / DRAWS, variance = squares / DRAWS - mean * mean;
    const double want = 1 / (4 * (2 * alpha + 1));
    ok(inside, "alpha %g: all draws lie where they should", alpha);
    ok(fabs(mean - 0.5) < 5 * sqrt(want / DRAWS), "alpha %g: the mean is %.4f", alpha, mean);
    ok(fabs(variance / want - 1) < 0.06, "alpha %g: the variance is %.4f, not far from %.4f", alpha, variance, want);
}

/* The same bits on every machine. */
static void constants(void)
{
    static const struct {
        double alpha;
        uint64_t digest;
    } want[] = {{0.1, 0x8318b281a56c2cbbull}, {0.4, 0xfedee28ef36fc625ull}, {1, 0xf5c2f90aa030d2eeull}, {8, 0x187e4fcd67074aa6ull}};
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        uint64_t digest = 14695981039346656037ull;
        for (uint64_t batch = 0; batch < 5000; batch++) {
            const struct stoker_mix mix = stoker_mix_draw(5, 3, batch, 1, want[k].alpha);
            uint64_t bits;
            memcpy(&bits, &mix.lambda, sizeof bits);
            digest = (digest ^ bits) * 1099511628211ull;
        }
        ok(digest == want[k].digest, "alpha %g draws 0x%016llxull", want[k].alpha, (unsigned long long)digest);
    }
}

int main(void)
{
    static const double alphas[] = {1e-3, 0.2, 1, 4, 1000};
    function_of_its_arguments();
    for (size_t k = 0; k < sizeof alphas / sizeof *alphas; k++)
        follows_beta(alphas[k]);
    constants();
    return done_testing();
}
