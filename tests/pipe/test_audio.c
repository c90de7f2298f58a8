/* test_audio.c - sounds through a loader: one size or many, bad ones, threads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/harness.h"
#include "pipe/host_device.h"
#include "sounds.h"

#include <string.h>

enum { SOUNDS = 13, FRAMES_MAX = 5000 };

static uint8_t files[SOUNDS][WAV_HEADER + FRAMES_MAX * 2 * sizeof(int16_t)];

static uint32_t frames_of(uint32_t sound) { return 1000 + 300 * sound; }

static void make(struct stoker_item *items, uint32_t channels)
{
    for (uint32_t k = 0; k < SOUNDS; k++)
        items[k] = (struct stoker_item){files[k], wav_write(files[k], k, frames_of(k), channels), k};
}

static struct stoker_loader_options options(uint32_t batch, int32_t workers)
{
    struct stoker_loader_options opt = harness_options(batch, workers);
    opt.order = STOKER_ORDER_SEQUENTIAL;
    return opt;
}

static const struct stoker_batch *first_batch(struct stoker_loader *loader)
{
    const struct stoker_batch *batch = NULL;
    struct stoker_error err;
    if (!loader || st_loader_start(loader, NULL, 0, &err) || st_loader_next(loader, &batch, &err))
        note("%s", loader ? err.message : "no loader");
    return batch;
}

static void check_lengths(const struct stoker_item *items, uint32_t channels)
{
    const struct stoker_loader_options opt = options(SOUNDS, 2);
    struct stoker_loader *loader = harness_open(items, SOUNDS, "audio_decode", &opt);
    const struct stoker_batch *batch = first_batch(loader);
    if (!ok(batch != NULL, "a batch of sounds of %u channels", channels))
        return;
    const struct stoker_tensor *t = &batch->images;
    const int64_t most = frames_of(SOUNDS - 1);
    ok(t->ndim == 3 && t->shape[0] == SOUNDS && t->shape[1] == channels && t->shape[2] == most &&
           !batch->ragged,
       "is one tensor, as long as the longest");
    bool lengths = batch->lengths.ndim == 1, same = true;
    for (uint32_t k = 0; k < SOUNDS; k++) {
        lengths = lengths && ((const int64_t *)batch->lengths.data)[k] == frames_of(k);
        for (uint32_t c = 0; c < channels; c++)
            for (uint32_t f = 0; f < most; f++) {
                const float want = f < frames_of(k) ? (float)wav_value(k, f, c) / 32768 : 0;
                same = same && ((const float *)t->data)[(k * channels + c) * (uint64_t)most + f] == want;
            }
    }
    ok(lengths, "with the lengths beside it");
    ok(same, "the samples of each channel, and zeros behind them");
    st_batch_release(batch, NULL);
    st_loader_close(loader);
}

static void check_one_size(const struct stoker_item *items)
{
    const char *text = "audio_mono; audio_crop(frames=500)";
    uint64_t digest[2];
    for (int k = 0; k < 2; k++) {
        const struct stoker_loader_options opt = options(4, 3 * k);
        struct stoker_loader *loader = harness_open(items, SOUNDS, text, &opt);
        const struct stoker_batch *batch = first_batch(loader);
        if (!ok(batch && batch->images.ndim == 3 && batch->images.shape[2] == 500 &&
                    batch->lengths.ndim == 0,
                "sounds of one size need no lengths"))
            return;
        digest[k] = digest_bytes(0, batch->images.data, 4 * 500 * sizeof(float));
        st_batch_release(batch, NULL);
        st_loader_close(loader);
    }
    ok(digest[0] == digest[1], "the same bytes with no thread and with three");
}

static void check_device(const struct stoker_item *items)
{
    const struct stoker_loader_options opt = options(4, 2);
    const char *text = "audio_mono; audio_crop(frames=400, random=false); audio_spectrogram(n_fft=100)";
    uint64_t digest[2][4] = {{0}};
    uint32_t taken[2];
    for (int k = 0; k < 2; k++) {
        struct stoker_error err;
        struct stoker_loader *loader =
            harness_open_on(k ? &host_devices : NULL, items, SOUNDS, text, &opt, &err);
        taken[k] = loader && !st_loader_start(loader, NULL, 0, NULL)
                       ? harness_take(loader, digest[k], 4, NULL)
                       : 0;
        st_loader_close(loader);
    }
    ok(taken[0] == 4 && taken[1] == 4 && !memcmp(digest[0], digest[1], sizeof digest[0]),
       "sounds of one size go to a device");
}

/* Several channels, also where the files have one; and the device gets what the CPU gets. */
static void check_channels(const struct stoker_item *items, uint32_t channels)
{
    static const char *const texts[] = {
        "audio_channels(count=2); audio_crop(frames=400, random=false)",
        "audio_gain(db=0); audio_channels(count=2); audio_crop(frames=400, random=false)",
        "audio_channels(count=2); audio_crop(frames=400); audio_spectrogram(n_fft=100)",
    };
    const struct stoker_loader_options opt = options(4, 2);
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        uint64_t digest[2][4] = {{0}};
        for (int on = 0; on < 2; on++) {
            struct stoker_error err = {0};
            struct stoker_loader *loader =
                harness_open_on(on ? &host_devices : NULL, items, SOUNDS, texts[k], &opt, &err);
            const struct stoker_batch *batch = first_batch(loader);
            const struct stoker_tensor *t = batch ? &batch->images : NULL;
            const bool samples = k < 2;
            ok(t && t->ndim == (samples ? 3 : 4) && t->shape[0] == 4 && t->shape[1] == 2 &&
                   t->shape[2] == (samples ? 400 : 51) && (samples || t->shape[3] == 9) &&
                   t->stride[0] == 2 * t->stride[1] && t->stride[t->ndim - 1] == 1 && batch->lengths.ndim == 0,
               "%s of %u channels%s (%s)", texts[k], channels, on ? ", on a device" : "", err.message);
            bool same = t && samples && !on;
            for (uint32_t f = 0; same && f < 400; f++)
                for (uint32_t c = 0; c < 2; c++)
                    same = same && ((const float *)t->data)[(3 * 2 + c) * 400 + f] ==
                                       (float)wav_value(3, f, channels > 1 ? c : 0) / 32768;
            if (samples && !on)
                ok(same, "each channel in its place");
            st_batch_release(batch, NULL);
            if (loader && !st_loader_start(loader, NULL, 0, NULL))
                harness_take(loader, digest[on], 4, NULL);
            st_loader_close(loader);
        }
        ok(digest[0][0] && !memcmp(digest[0], digest[1], sizeof digest[0]), "a device has the bytes of the CPU");
    }
}

/* Files of one, two and three channels in one batch. */
static void check_mixed_channels(struct stoker_item *items)
{
    static const struct {
        const char *text, *said;
        int64_t channels;
    } cases[] = {
        {"audio_decode", "2 channels, where the first of the data set has 1: put Mono", 0},
        {"audio_crop(frames=50)", "audio_mono", 0},
        {"audio_mono", NULL, 1},
        {"audio_mono; audio_crop(frames=50)", NULL, 1},
        {"audio_channels(count=1)", NULL, 1},
        {"audio_channels(count=2); audio_crop(frames=50)", "3 channels cannot become one of 2", 0},
        {"audio_mono; audio_channels(count=3)", NULL, 3},
    };
    const struct stoker_loader_options opt = options(3, 2);
    for (uint32_t k = 0; k < 3; k++)
        items[k].size = wav_write(files[k], k, frames_of(k), k + 1);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct stoker_loader *loader = harness_open(items, 3, cases[k].text, &opt);
        const struct stoker_batch *batch = NULL;
        struct stoker_error err = {0};
        st_loader_start(loader, NULL, 0, NULL);
        const int rc = st_loader_next(loader, &batch, &err);
        ok(cases[k].said ? rc < 0 && strstr(err.message, cases[k].said)
                         : rc == 0 && batch->images.shape[1] == cases[k].channels,
           "%s on one, two and three channels%s%s", cases[k].text, rc ? ": " : "", err.message);
        st_batch_release(rc ? NULL : batch, NULL);
        st_loader_close(loader);
    }
    for (int32_t workers = 0; workers <= 2; workers++) {
        struct stoker_loader_options skip = options(3, workers);
        skip.on_error = workers == 1 ? STOKER_ON_ERROR_REPLACE : STOKER_ON_ERROR_SKIP;
        struct stoker_loader *loader = harness_open(items, 3, "audio_decode", &skip);
        const struct stoker_batch *batch = first_batch(loader);
        struct stoker_bad_sample bad[2] = {0};
        const bool both = st_loader_bad(loader, 0, &bad[0]) && st_loader_bad(loader, 1, &bad[1]);
        ok(batch && batch->images.shape[1] == 1 && both && bad[0].sample + bad[1].sample == 3,
           "%d workers: sounds of other channels than the first are bad samples (%s)", workers, bad[0].reason);
        st_batch_release(batch, NULL);
        st_loader_close(loader);
    }
}

static void check_bad(struct stoker_item *items)
{
    static const uint8_t noise[100] = "this is no sound";
    struct stoker_loader_options opt = options(3, 0);
    items[1].data = noise;
    items[1].size = sizeof noise;
    opt.on_error = STOKER_ON_ERROR_REPLACE;
    struct stoker_loader *loader = harness_open(items, SOUNDS, "audio_spectrogram(n_fft=100)", &opt);
    const struct stoker_batch *batch = first_batch(loader);
    if (!ok(batch && batch->images.ndim == 4 && batch->images.shape[2] == 51,
            "a batch with a bad sound in it"))
        return;
    ok(((const int64_t *)batch->labels.data)[1] == -100 &&
           ((const int64_t *)batch->lengths.data)[1] == 0,
       "which has the label -100 and the length 0");
    st_batch_release(batch, NULL);
    st_loader_close(loader);
}

static void check_refusals(struct stoker_item *items)
{
    struct stoker_loader_options opt = options(4, 0);
    struct stoker_error err;
    opt.dtype_given = true;
    opt.dtype = STOKER_DTYPE_U8;
    ok(!harness_open_on(NULL, items, SOUNDS, "audio_mono", &opt, &err) && strstr(err.message, "float32"),
       "%s", err.message);
    opt.dtype_given = false;
    ok(!harness_open_on(NULL, items, SOUNDS, "audio_mono; to_tensor", &opt, &err), "%s", err.message);
    ok(!harness_open_on(NULL, items, SOUNDS, "to_tensor; audio_mono", &opt, &err), "%s", err.message);
    ok(!harness_open_on(NULL, items, SOUNDS, "audio_mono; random_apply{audio_crop(frames=5)}", &opt,
                        &err),
       "%s", err.message);
    ok(!harness_open_on(&host_devices, items, SOUNDS, "audio_crop(frames=5)", &opt, &err) &&
           strstr(err.message, "fixed channels (Mono"),
       "%s", err.message);
}

int main(void)
{
    struct stoker_item items[SOUNDS];
    make(items, 1);
    check_lengths(items, 1);
    make(items, 2);
    check_lengths(items, 2);
    check_one_size(items);
    check_device(items);
    check_channels(items, 2);
    make(items, 1);
    check_channels(items, 1);
    check_refusals(items);
    check_bad(items);
    make(items, 1);
    check_mixed_channels(items);
    return done_testing();
}
