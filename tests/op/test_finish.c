/* Finishing: the table is torchvision's arithmetic step by step, in every type; rows land where they
 * belong, turned as asked; what makes no sense is refused. */
#include "op/tensor/finish.h"
#include "variants.h"

#include <math.h>

static const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};

static struct st_finish_spec normalising(enum stoker_dtype dtype)
{
    struct st_finish_spec spec = {.scaled = true, .dtype = dtype, .steps = 1};
    memcpy(spec.step[0].mean, mean, sizeof mean);
    memcpy(spec.step[0].std, std, sizeof std);
    return spec;
}

/* The value of a half or bfloat16 of these bits, by definition. */
static double decoded(enum stoker_dtype dtype, uint32_t bits)
{
    const int fraction_bits = dtype == STOKER_DTYPE_F16 ? 10 : 7, bias = dtype == STOKER_DTYPE_F16 ? 15 : 127;
    const int exponent = (int)(bits >> fraction_bits) & (2 * bias + 1);
    const double fraction = bits & ((1u << fraction_bits) - 1), one = 1 << fraction_bits;
    const double size = exponent == 0 ? ldexp(fraction, 1 - bias - fraction_bits)
                                      : ldexp(one + fraction, exponent - bias - fraction_bits);
    return bits >> 15 ? -size : size;
}

/* The nearest of all finite values; of two, the one with even bits. */
static uint32_t nearest_bits(enum stoker_dtype dtype, double value)
{
    const uint32_t finite = dtype == STOKER_DTYPE_F16 ? 0x7c00 : 0x7f80, sign = signbit(value) ? 0x8000 : 0;
    uint32_t low = 0, high = finite - 1;
    while (low < high) { /* the largest that is not above */
        const uint32_t middle = (low + high + 1) / 2;
        if (decoded(dtype, middle) <= fabs(value))
            low = middle;
        else
            high = middle - 1;
    }
    const double below = fabs(value) - decoded(dtype, low);
    const double above = low + 1 < finite ? decoded(dtype, low + 1) - fabs(value) : INFINITY;
    return sign | (above < below || (above == below && low & 1) ? low + 1 : low);
}

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint32_t bits_of(enum stoker_dtype dtype, float value)
{
    return dtype == STOKER_DTYPE_F32 ? float_bits(value) : nearest_bits(dtype, (double)value);
}

static float stored(enum stoker_dtype dtype, float value)
{
    return dtype == STOKER_DTYPE_F32 ? value : (float)decoded(dtype, nearest_bits(dtype, (double)value));
}

/* Every byte of every channel, the pipeline in `inner`, the batch in `outer`. */
static void table(enum stoker_dtype inner, enum stoker_dtype outer, bool steps, const char *what)
{
    struct st_finish_spec spec = normalising(inner);
    struct st_finish f;
    int wrong = 0;
    spec.steps = steps;
    if (!ok(st_finish_init(&f, &spec, outer, STOKER_LAYOUT_NCHW, 3, NULL) == STOKER_OK, "%s is accepted", what))
        return;
    for (int c = 0; c < 3; c++)
        for (int x = 0; x < 256; x++) {
            volatile float value = (float)x / 255.0f;
            value = stored(inner, value);
            if (steps) {
                value = value - stored(inner, mean[c]);
                value = stored(inner, value);
                value = value / stored(inner, std[c]);
                value = stored(inner, value);
            }
            wrong += f.lut[c][x] != bits_of(outer, value);
        }
    ok(wrong == 0, "%s: %d of 768 values differ from the steps", what, wrong);
}

static void tables(void)
{
    table(STOKER_DTYPE_F32, STOKER_DTYPE_F32, false, "float32");
    table(STOKER_DTYPE_F32, STOKER_DTYPE_F32, true, "float32, normalised");
    table(STOKER_DTYPE_F32, STOKER_DTYPE_F16, true, "float32, normalised, cast to float16");
    table(STOKER_DTYPE_F32, STOKER_DTYPE_BF16, true, "float32, normalised, cast to bfloat16");
    table(STOKER_DTYPE_F16, STOKER_DTYPE_F16, true, "float16, normalised in float16");
    table(STOKER_DTYPE_BF16, STOKER_DTYPE_BF16, true, "bfloat16, normalised in bfloat16");
    table(STOKER_DTYPE_F16, STOKER_DTYPE_F16, false, "float16");
    struct st_finish f;
    const struct st_finish_spec spec = normalising(STOKER_DTYPE_F32);
    st_finish_init(&f, &spec, STOKER_DTYPE_F32, STOKER_LAYOUT_NCHW, 3, NULL);
    ok(f.formula == ST_FORMULA_NORMALIZE, "ImageNet's numbers need no table");
    struct st_finish_spec of_v2 = spec;
    of_v2.by_product = true;
    st_finish_init(&f, &of_v2, STOKER_DTYPE_F32, STOKER_LAYOUT_NCHW, 3, NULL);
    ok(f.formula == ST_FORMULA_NORMALIZE_PRODUCT, "nor do those of torchvision's v2");
    const struct st_finish_spec product = {
        .dtype = STOKER_DTYPE_F32,
        .steps = 1,
        .step = {{{123.675f, 116.28f, 103.53f}, {0.0171248f, -0.f, 1e-30f}, .product = true}}};
    st_finish_init(&f, &product, STOKER_DTYPE_F32, STOKER_LAYOUT_NCHW, 3, NULL);
    ok(f.formula == ST_FORMULA_PRODUCT, "nor do products of bytes");
}

static void single_values(void)
{
    struct st_finish_spec spec = normalising(STOKER_DTYPE_F32);
    static const float some[] = {0,       1,       -1,      0.1f,     65504, 65519,
                                 6.1e-5f, 5.9e-8f, 2.9e-8f, -3.3e-6f, 1e-9f};
    int wrong = 0;
    spec.steps = 0;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        for (int dtype = STOKER_DTYPE_F32; dtype <= STOKER_DTYPE_BF16; dtype++)
            wrong += st_finish_value(&spec, 0, (enum stoker_dtype)dtype, 0, some[i]) !=
                     bits_of((enum stoker_dtype)dtype, some[i]);
    ok(wrong == 0, "%d single values differ, subnormal halves and the largest included", wrong);
    ok(st_finish_value(&spec, 0, STOKER_DTYPE_F16, 0, 65520) == 0x7c00,
       "what is too large for a half is infinite");
    ok(st_finish_value(&spec, 0, STOKER_DTYPE_F16, 0, NAN) == 0x7e00, "not a number stays so");
    spec.steps = 1;
    const volatile float centred = 0.5f - mean[1];
    ok(st_finish_value(&spec, 0, STOKER_DTYPE_F32, 1, 0.5f) == float_bits(centred / std[1]),
       "a value takes the steps");
    ok(st_finish_value(&spec, 1, STOKER_DTYPE_F32, 1, 0.5f) == float_bits(0.5f), "or only those that follow");
}

/* ---- placing ----------------------------------------------------------------------------------- */

static bool placed(const struct st_kernels *kernels, const struct st_finish *f, int32_t width,
                   int32_t height, bool mirror, bool flip)
{
    uint64_t seed = 31;
    const size_t count = (size_t)(width * height), c = (size_t)f->channels;
    uint8_t *pixels = random_bytes(&seed, count * c), *slot = guarded(count * c * f->element);
    const struct st_view view = {pixels, (ptrdiff_t)((size_t)width * c), width, height, f->channels};
    const struct st_place place = {slot, width, height};
    st_finish_view(f, kernels, &view, mirror, flip, &place);
    bool same = unharmed(slot, count * c * f->element);
    for (size_t i = 0; i < count * c; i++) {
        const size_t x = i / c % (size_t)width, y = i / c / (size_t)width, k = i % c;
        const size_t to =
            (flip ? (size_t)height - 1 - y : y) * (size_t)width + (mirror ? (size_t)width - 1 - x : x);
        const size_t at = f->layout == STOKER_LAYOUT_NCHW ? k * count + to : to * c + k;
        same = same && !memcmp(slot + at * f->element, &f->lut[k][pixels[i]], f->element);
    }
    free(pixels);
    guarded_free(slot);
    return same;
}

static void placing(const struct st_kernels *kernels)
{
    static const int32_t widths[] = {1, 5, 16, 31, 224, 700, 1200};
    int wrong = 0, cases = 0;
    for (int dtype = STOKER_DTYPE_U8; dtype <= STOKER_DTYPE_BF16; dtype++)
        for (int layout = STOKER_LAYOUT_NCHW; layout <= STOKER_LAYOUT_NHWC; layout++)
            for (int32_t channels = 1; channels <= 3; channels += 2) {
                const struct st_finish_spec floats = normalising(STOKER_DTYPE_F32),
                                            bytes = {.dtype = STOKER_DTYPE_U8};
                struct st_finish f;
                st_finish_init(&f, dtype == STOKER_DTYPE_U8 ? &bytes : &floats, (enum stoker_dtype)dtype,
                               (enum stoker_layout)layout, channels, NULL);
                for (int i = 0; i < 7 * 4; i++, cases++)
                    wrong += !placed(kernels, &f, widths[i / 4], 3, i & 1, i & 2);
            }
    ok(wrong == 0, "%s: %d of %d images are not where they belong", kernels->name, wrong, cases);
}

static void refusals(void)
{
    struct st_finish_spec spec = normalising(STOKER_DTYPE_F32);
    struct stoker_error err;
    struct st_finish f;
    ok(st_finish_init(&f, &spec, STOKER_DTYPE_U8, STOKER_LAYOUT_NCHW, 3, &err) == STOKER_EINVAL,
       "floats as uint8: %s", err.message);
    ok(st_finish_init(&f, &spec, STOKER_DTYPE_I64, STOKER_LAYOUT_NCHW, 3, &err) == STOKER_EINVAL, "int64: %s",
       err.message);
    ok(st_finish_init(&f, &spec, STOKER_DTYPE_F32, STOKER_LAYOUT_NCHW, 2, &err) == STOKER_EINVAL, "channels: %s",
       err.message);
    spec.step[0].std[1] = 0;
    ok(st_finish_init(&f, &spec, STOKER_DTYPE_F32, STOKER_LAYOUT_NCHW, 3, &err) == STOKER_EINVAL, "std: %s",
       err.message);
    spec.steps = ST_NORMALIZE_MAX + 1;
    ok(st_finish_init(&f, &spec, STOKER_DTYPE_F32, STOKER_LAYOUT_NCHW, 3, &err) == STOKER_EINVAL, "steps: %s",
       err.message);
}

int main(void)
{
    const struct st_kernels *list[4];
    const int count = variants(list);
    tables();
    single_values();
    for (int i = 0; i < count; i++)
        placing(list[i]);
    refusals();
    return done_testing();
}
