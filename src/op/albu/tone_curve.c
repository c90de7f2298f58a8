/* tone_curve.c - bends the curve of tones by random amounts, as Albumentations' RandomToneCurve does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/functions.h"
#include "op/albu/albu.h"
#include "order/normals.h"

#include <math.h>

enum { CHANNELS = 3 };
static const char name[] = "albu_tone_curve";

struct tone_curve {
    double scale;
    bool per_channel;
    struct st_normals normals;
    double cube[256]; /* of each level, from 0 to 1 */
};

static const struct st_param params[] = {
    {.name = "scale",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct tone_curve, scale),
     .def = 0.1,
     .max = 1,
     .help = "standard deviation of the two points that bend the curve"},
    {.name = "per_channel",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct tone_curve, per_channel),
     .help = "channels have curves of their own"},
    {0},
};

static double level(int value) { return value == 255 ? 1 : value * (1.0 / 255); }

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct tone_curve *t = self;
    st_normals_init(&t->normals);
    for (int v = 0; v < 256; v++)
        t->cube[v] = st_power(level(v), 3);
    return st_plan_bytes(shape, finish, name, err);
}

static double draw_point(const struct tone_curve *t, struct st_rng *rng, double mean)
{
    const double at = mean + t->scale * st_normals_draw(&t->normals, rng);
    return at > 0 ? (at < 1 ? at : 1) : 0;
}

/* A Bezier curve from 0 to 1 with these points at a third and two thirds. */
static void fill(uint8_t table[256], const struct tone_curve *t, double low, double high)
{
    for (int v = 0; v < 256; v++) {
        const double at = level(v), rest = 1 - at;
        const double first = 3 * (rest * rest) * at * low, second = 3 * rest * (at * at) * high;
        table[v] = st_albu_byte((float)rint((first + second + t->cube[v]) * 255));
    }
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct tone_curve *t = self;
    uint8_t table[CHANNELS][256];
    double low = 0, high = 0;
    for (int c = 0; c < CHANNELS; c++) {
        if (c == 0 || t->per_channel) {
            low = draw_point(t, rng, 0.25);
            high = draw_point(t, rng, 0.75);
        }
        fill(table[c], t, low, high);
    }
    return st_albu_replace(image, (const uint8_t(*)[256])table, err);
}

const struct st_op st_op_albu_tone_curve = {
    .name = name,
    .help = "bends the curve of tones by random amounts, as Albumentations does",
    .self_size = sizeof(struct tone_curve),
    .params = params,
    .plan = plan,
    .run = run,
};
