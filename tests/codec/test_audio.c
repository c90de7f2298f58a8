/* test_audio.c - sounds of every kind that the library writes, whole, in part and damaged
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/audio.h"

#include "leaks.h"
#include "tap.h"

#include <math.h>
#include <sndfile.h>
#include <string.h>

enum { FRAMES = 60000, CHANNELS = 2, RATE = 48000, ROOM = 1 << 20 };

static float sound[FRAMES * CHANNELS];

/* A file in memory that the library can write. */
struct sink {
    uint8_t data[ROOM];
    sf_count_t size, at;
};

static sf_count_t sink_size(void *cookie) { return ((struct sink *)cookie)->size; }

static sf_count_t sink_seek(sf_count_t offset, int whence, void *cookie)
{
    struct sink *sink = cookie;
    return sink->at = offset + (whence == SEEK_CUR ? sink->at : whence == SEEK_END ? sink->size : 0);
}

static sf_count_t sink_read(void *out, sf_count_t count, void *cookie)
{
    struct sink *sink = cookie;
    count = count < sink->size - sink->at ? count : sink->size - sink->at;
    memcpy(out, sink->data + sink->at, (size_t)count);
    sink->at += count;
    return count;
}

static sf_count_t sink_write(const void *data, sf_count_t count, void *cookie)
{
    struct sink *sink = cookie;
    if (sink->at + count > ROOM)
        return 0;
    memcpy(sink->data + sink->at, data, (size_t)count);
    sink->at += count;
    sink->size = sink->at > sink->size ? sink->at : sink->size;
    return count;
}

static sf_count_t sink_tell(void *cookie) { return ((struct sink *)cookie)->at; }

static bool encode(struct sink *sink, int format)
{
    SF_VIRTUAL_IO io = {sink_size, sink_seek, sink_read, sink_write, sink_tell};
    SF_INFO info = {.samplerate = RATE, .channels = CHANNELS, .format = format};
    memset(sink, 0, sizeof *sink);
    SNDFILE *file = sf_open_virtual(&io, SFM_WRITE, &info, sink);
    if (!file)
        return false;
    const bool all = sf_writef_float(file, sound, FRAMES) == FRAMES;
    return sf_close(file) == 0 && all;
}

/* The largest distance of decoded frames from what was encoded; -1: they cannot be had. */
static double distance(struct st_bytes in, uint64_t first, uint64_t frames)
{
    static float out[FRAMES * CHANNELS];
    struct st_audio_header header;
    struct st_audio_file *file;
    double worst = -1;
    if (st_audio_file_open(&file, in, &header, NULL))
        return -1;
    if (header.channels == CHANNELS && header.rate == RATE && header.frames >= first + frames &&
        !st_audio_file_read(file, first, frames, out, NULL)) {
        worst = 0;
        for (uint64_t k = 0; k < frames * CHANNELS; k++)
            worst = fmax(worst, fabs((double)(out[k] - sound[first * CHANNELS + k])));
    }
    st_audio_file_close(file);
    return worst;
}

/* However a file was damaged, it is decoded or refused with a sentence. */
static bool survives(struct st_bytes in)
{
    static float out[FRAMES * CHANNELS];
    struct st_audio_header header;
    struct st_audio_file *file;
    struct stoker_error err = {0};
    int rc = st_audio_file_open(&file, in, &header, &err);
    if (!rc && header.channels <= CHANNELS && header.frames)
        rc = st_audio_file_read(file, 0, header.frames < FRAMES ? header.frames : FRAMES, out, &err);
    st_audio_file_close(file);
    return rc == 0 || (rc < 0 && strlen(err.message) > 20);
}

static void check_kind(struct sink *sink, enum st_audio_kind kind, int format, double tolerance)
{
    struct st_audio_format known;
    const char *name = st_audio_names[kind];
    if (!st_audio_format_at(kind, &known) || !known.present || !encode(sink, format)) {
        skip(name, "this libsndfile does not write it");
        return;
    }
    const struct st_bytes in = {sink->data, (size_t)sink->size};
    note("%s: %zu bytes", name, in.size);
    ok(st_audio_probe(in) == (int32_t)kind, "%s is known by its bytes", name);
    ok(distance(in, 0, FRAMES) >= 0 && distance(in, 0, FRAMES) <= tolerance,
       "%s: all frames, off by %g at most", name, distance(in, 0, FRAMES));
    ok(distance(in, 47777, 3000) >= 0 && distance(in, 47777, 3000) <= tolerance,
       "%s: a part, off by %g at most", name, distance(in, 47777, 3000));
    bool all = true;
    for (size_t cut = 0; cut < in.size; cut += cut < 200 && kind != ST_AUDIO_MP3 ? 1 : in.size / 13)
        all = survives((struct st_bytes){in.data, cut}) && all;
    ok(all, "%s: cut off anywhere, it is decoded or refused with a sentence", name);
    uint32_t state = 1;
    for (int k = 0; k < (kind == ST_AUDIO_MP3 ? 20 : 200); k++) { /* libmpg123 prints a line for each */
        state = state * 1664525u + 1013904223u;
        const size_t at = (state >> 8) % (k % 2 ? 128 : in.size);
        const uint8_t was = sink->data[at];
        sink->data[at] = (uint8_t)(state >> 24);
        all = survives(in) && all;
        sink->data[at] = was;
    }
    ok(all, "%s: with any byte changed, too", name);
}

static void check_strangers(void)
{
    static const uint8_t text[64] = "this is no sound, however long one listens to it";
    struct st_audio_header header;
    struct st_audio_file *file;
    struct stoker_error err;
    ok(st_audio_file_open(&file, (struct st_bytes){text, sizeof text}, &header, &err) ==
               STOKER_ECORRUPT &&
           !file,
       "what is no sound is refused");
    ok(strstr(err.message, "not a sound") != NULL, "with a sentence: %s", err.message);
    ok(st_audio_file_open(&file, (struct st_bytes){text, 0}, &header, &err) == STOKER_ECORRUPT,
       "nothing is no sound");
    st_audio_file_close(NULL);
    struct st_audio_format format;
    ok(st_audio_format_at(0, &format) && format.present && !st_audio_format_at(ST_AUDIO_KINDS, &format),
       "every kind is listed, WAV among those that are there");
}

int main(void)
{
    static struct sink sink;
    for (int k = 0; k < FRAMES * CHANNELS; k++)
        sound[k] = (float)(0.4 * sin(k / 2 * (k % 2 ? 0.031 : 0.047)) + 0.1 * sin(k * 0.002));
    check_kind(&sink, ST_AUDIO_WAV, SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1.0 / 32000);
    check_kind(&sink, ST_AUDIO_WAV, SF_FORMAT_WAV | SF_FORMAT_FLOAT, 0);
    check_kind(&sink, ST_AUDIO_FLAC, SF_FORMAT_FLAC | SF_FORMAT_PCM_24, 1.0 / (1 << 22));
    check_kind(&sink, ST_AUDIO_VORBIS, SF_FORMAT_OGG | SF_FORMAT_VORBIS, 0.1);
    check_kind(&sink, ST_AUDIO_OPUS, SF_FORMAT_OGG | 0x64, 0.3);
    check_kind(&sink, ST_AUDIO_MP3, 0x230000 | 0x82, 0.2);
    check_strangers();
    return done_testing();
}
