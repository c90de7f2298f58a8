/* One sound by the public interface: whole, in part, too large, damaged. */
#include "sounds.h"
#include "tap.h"

#include <stoker/stoker.h>

enum { FRAMES = 3000, CHANNELS = 2, SOUND = 3 };

static uint8_t file[WAV_HEADER + FRAMES * CHANNELS * sizeof(int16_t)];

static bool is_part(const struct stoker_sound *sound, uint64_t first, uint64_t frames)
{
    bool same = sound->rate == WAV_RATE && sound->channels == CHANNELS && sound->frames == frames &&
                sound->length == FRAMES && sound->samples;
    for (uint32_t c = 0; same && c < CHANNELS; c++)
        for (uint64_t k = 0; same && k < frames; k++)
            same = sound->samples[c * frames + k] ==
                   (float)wav_value(SOUND, (uint32_t)(first + k), c) / 32768;
    return same;
}

static void parts(size_t size)
{
    static const uint64_t cases[][2] = {{0, 1}, {1000, 500}, {FRAMES - 1, 1}, {2500, 0}, {FRAMES, 0}};
    struct stoker_sound_options opt = stoker_sound_defaults();
    struct stoker_sound sound;
    struct stoker_error err = {0};
    ok(opt.size == sizeof opt && opt.pixel_limit > 1000000, "defaults are filled in");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        opt.first = cases[k][0];
        opt.frames = cases[k][1];
        const uint64_t frames = opt.frames ? opt.frames : FRAMES - opt.first;
        const bool right = stoker_sound_decode(&sound, file, size, "a.wav", &opt, &err) == 0 &&
                           is_part(&sound, opt.first, frames);
        ok(right, "%llu frames from %llu on (%s)", (unsigned long long)frames, (unsigned long long)opt.first,
           err.message);
        stoker_sound_close(&sound);
    }
    opt.first = 1;
    opt.frames = FRAMES;
    ok(stoker_sound_decode(&sound, file, size, "a.wav", &opt, &err) == STOKER_EINVAL && !sound.samples &&
           strstr(err.message, "a.wav") && strstr(err.message, "3000"),
       "what lies behind the end is refused (%s)", err.message);
    opt.first = UINT64_MAX;
    ok(stoker_sound_decode(&sound, file, size, NULL, &opt, &err) == STOKER_EINVAL, "however far (%s)",
       err.message);
    opt = stoker_sound_defaults();
    opt.pixel_limit = FRAMES * CHANNELS - 1;
    ok(stoker_sound_decode(&sound, file, size, "a.wav", &opt, &err) == STOKER_ELIMIT,
       "too many values are refused (%s)", err.message);
    opt.frames = FRAMES - 1;
    ok(stoker_sound_decode(&sound, file, size, "a.wav", &opt, &err) == 0,
       "but only those asked for count");
    stoker_sound_close(&sound);
    opt.size = 0;
    ok(stoker_sound_decode(&sound, file, size, "a.wav", &opt, &err) == STOKER_EINVAL,
       "size 0 is refused (%s)", err.message);
}

static void whole(size_t size)
{
    struct stoker_sound sound;
    struct stoker_error err = {0};
    ok(stoker_sound_decode(&sound, file, size, "a.wav", NULL, &err) == 0 && is_part(&sound, 0, FRAMES),
       "a sound is decoded, channel by channel (%s)", err.message);
    stoker_sound_close(&sound);
    ok(!sound.samples && !sound.frames, "and given back");
    stoker_sound_close(&sound);
    stoker_sound_close(NULL);
}

static void wrong(size_t size)
{
    struct stoker_sound sound;
    struct stoker_error err = {0};
    ok(stoker_sound_decode(&sound, "no sound at all", 15, "b.wav", NULL, &err) == STOKER_ECORRUPT &&
           strstr(err.message, "b.wav"),
       "what is no sound is named (%s)", err.message);
    ok(stoker_sound_decode(&sound, NULL, 0, "c.wav", NULL, &err) == STOKER_ECORRUPT, "no bytes (%s)",
       err.message);
    ok(stoker_sound_decode(&sound, file, 30, "d.wav", NULL, &err) < 0 && !sound.samples,
       "half a header (%s)", err.message);
    ok(stoker_sound_decode(NULL, file, size, "e.wav", NULL, &err) == STOKER_EINVAL &&
           stoker_sound_decode(&sound, NULL, size, "e.wav", NULL, NULL) == STOKER_EINVAL,
       "nowhere to put it (%s)", err.message);
}

int main(void)
{
    struct stoker_feature feature = {.size = sizeof feature};
    const size_t size = wav_write(file, SOUND, FRAMES, CHANNELS);
    for (uint32_t k = 0; stoker_feature_at(k, &feature) && strcmp(feature.name, "libsndfile"); k++)
        ;
    if (feature.present) {
        whole(size);
        parts(size);
        wrong(size);
        return done_testing();
    }
    struct stoker_sound sound;
    struct stoker_error err;
    ok(stoker_sound_decode(&sound, file, size, "a.wav", NULL, &err) == STOKER_EUNSUPPORTED, "%s",
       err.message);
    return done_testing();
}
