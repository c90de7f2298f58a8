/* audio.c - WAV, FLAC, Ogg/Vorbis, Opus and MP3 by libsndfile, from memory
 *
 * When a file fails to open, libsndfile keeps the error text in variables shared by all threads; so only
 * errors of open files are queried.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/audio.h"

#include "base/mem.h"
#include "base/text.h"

#include <sndfile.h>
#include <stdlib.h>
#include <string.h>

enum { RATE_MAX = 1 << 20 };
static const sf_count_t frames_max = (sf_count_t)1 << 40;

struct st_audio_file {
    SNDFILE *sound;
    struct st_bytes in;
    sf_count_t at; /* offset of the next byte that the library reads */
    uint32_t channels;
    uint64_t run_up; /* frames to decode and discard before those that are needed */
    bool unproven;   /* do not seek before a frame has been decoded */
};

/* MP3 frames use bits of earlier frames, up to 511 bytes back, which is this many frames of the smallest
 * size. Decoding that starts later gives silence or noise at first. */
enum { MP3_RUN_UP = 32 * 1152 };

/* ---- a file in memory ---------------------------------------------------------------------------- */

static sf_count_t file_size(void *cookie)
{
    return (sf_count_t)((struct st_audio_file *)cookie)->in.size;
}

static sf_count_t file_seek(sf_count_t offset, int whence, void *cookie)
{
    struct st_audio_file *file = cookie;
    const sf_count_t size = (sf_count_t)file->in.size;
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file->at : size;
    sf_count_t to;
    if (__builtin_add_overflow(from, offset, &to) || to < 0)
        return -1;
    return file->at = to > size ? size : to;
}

static sf_count_t file_read(void *out, sf_count_t count, void *cookie)
{
    struct st_audio_file *file = cookie;
    const sf_count_t left = (sf_count_t)file->in.size - file->at;
    if (count > left)
        count = left;
    if (count <= 0)
        return 0;
    memcpy(out, file->in.data + file->at, (size_t)count);
    file->at += count;
    return count;
}

static sf_count_t file_write(const void *data, sf_count_t count, void *cookie)
{
    (void)data;
    (void)count;
    (void)cookie;
    return 0;
}

static sf_count_t file_tell(void *cookie) { return ((struct st_audio_file *)cookie)->at; }

static SF_VIRTUAL_IO memory_io = {file_size, file_seek, file_read, file_write, file_tell};

/* ---- supported kinds ----------------------------------------------------------------------------- */

/* Whether one of the library's lists, of major formats or of subtypes, contains this one. */
static bool listed(int count_command, int item_command, int wanted)
{
    int count = 0;
    if (sf_command(NULL, count_command, &count, (int)sizeof count))
        return false;
    for (int k = 0; k < count; k++) {
        SF_FORMAT_INFO info = {.format = k};
        if (!sf_command(NULL, item_command, &info, (int)sizeof info) && info.format == wanted)
            return true;
    }
    return false;
}

static bool has_major(int format)
{
    return listed(SFC_GET_FORMAT_MAJOR_COUNT, SFC_GET_FORMAT_MAJOR, format);
}

static bool has_subtype(int format)
{
    return listed(SFC_GET_FORMAT_SUBTYPE_COUNT, SFC_GET_FORMAT_SUBTYPE, format);
}

/* The headers may be older than the library, so the numbers of recent formats are defined here. */
enum { MAJOR_MPEG = 0x230000, SUBTYPE_OPUS = 0x64 };

static bool library_reads(enum st_audio_kind kind)
{
    switch (kind) {
    case ST_AUDIO_FLAC:
        return has_major(SF_FORMAT_FLAC);
    case ST_AUDIO_VORBIS:
        return has_major(SF_FORMAT_OGG) && has_subtype(SF_FORMAT_VORBIS);
    case ST_AUDIO_OPUS:
        return has_major(SF_FORMAT_OGG) && has_subtype(SUBTYPE_OPUS);
    case ST_AUDIO_MP3:
        return has_major(MAJOR_MPEG);
    default:
        return true;
    }
}

bool st_audio_format_at(uint32_t index, struct st_audio_format *out)
{
    static const char *const since[ST_AUDIO_KINDS] = {
        [ST_AUDIO_WAV] = "any libsndfile",
        [ST_AUDIO_FLAC] = "requires libsndfile built with libFLAC",
        [ST_AUDIO_VORBIS] = "requires libsndfile built with libvorbis",
        [ST_AUDIO_OPUS] = "requires libsndfile 1.0.29 or newer, built with libopus",
        [ST_AUDIO_MP3] = "requires libsndfile 1.1 or newer, built with libmpg123",
    };
    if (index >= ST_AUDIO_KINDS)
        return false;
    const bool present = library_reads((enum st_audio_kind)index);
    *out = (struct st_audio_format){st_audio_names[index], present ? sf_version_string() : since[index],
                                    present};
    return true;
}

/* ---- files --------------------------------------------------------------------------------------- */

static int refuse(struct st_bytes in, struct stoker_error *err)
{
    const int32_t kind = st_audio_probe(in);
    struct st_audio_format format;
    if (kind < 0)
        return st_fail(err, STOKER_ECORRUPT,
                       "%zu byte%s, not a sound that %s can read (WAV, FLAC, Ogg/Vorbis, Opus, MP3)",
                       in.size, st_s(in.size), sf_version_string());
    if (st_audio_format_at((uint32_t)kind, &format) && !format.present)
        return st_fail(err, STOKER_EUNSUPPORTED, "this %s sound cannot be read by %s: %s",
                       format.name, sf_version_string(), format.detail);
    return st_fail(err, STOKER_ECORRUPT,
                   "the header of this %s sound is damaged or truncated (%zu byte%s)",
                   st_audio_names[kind], in.size, st_s(in.size));
}

int st_audio_file_open(struct st_audio_file **out, struct st_bytes in, struct st_audio_header *header,
                       struct stoker_error *err)
{
    SF_INFO info = {0};
    *out = NULL;
    if (in.size > INT64_MAX)
        return st_fail(err, STOKER_ELIMIT, "a sound of %zu bytes is too large", in.size);
    struct st_audio_file *file = st_calloc(1, sizeof *file);
    if (!file)
        return st_fail(err, STOKER_ENOMEM, "no memory to open a sound");
    file->in = in;
    /* Only known kinds, so that the library's other parsers never see hostile bytes. */
    file->sound = st_audio_probe(in) < 0 ? NULL : sf_open_virtual(&memory_io, SFM_READ, &info, file);
    if (!file->sound) {
        free(file);
        return refuse(in, err);
    }
    if (info.channels < 1 || info.channels > ST_AUDIO_CHANNELS_MAX || info.samplerate < 1 ||
        info.samplerate > RATE_MAX || info.frames < 0 || info.frames > frames_max) {
        st_audio_file_close(file);
        return st_fail(err, STOKER_ECORRUPT,
                       "invalid sound header: %d channels, %d samples per second, %lld frames",
                       info.channels, info.samplerate, (long long)info.frames);
    }
    file->channels = (uint32_t)info.channels;
    file->run_up = st_audio_probe(in) == ST_AUDIO_MP3 ? MP3_RUN_UP : 0;
    file->unproven = st_audio_probe(in) == ST_AUDIO_VORBIS;
    *header = (struct st_audio_header){(uint32_t)info.samplerate, file->channels, (uint64_t)info.frames};
    *out = file;
    return 0;
}

/* libsndfile opens a Vorbis file whose tables libvorbis rejects, and libvorbis then crashes on a seek
 * (1.2.0 with 1.3.7 does). Such a file never yields a frame, so one is read first; through another
 * handle, because seeking after a read takes a different path. */
static bool prove(struct st_audio_file *file)
{
    struct st_audio_file other = {.in = file->in};
    SF_INFO info = {0};
    float frame[ST_AUDIO_CHANNELS_MAX];
    if (!file->unproven)
        return true;
    SNDFILE *sound = sf_open_virtual(&memory_io, SFM_READ, &info, &other);
    if (sound && info.channels == (int)file->channels)
        file->unproven = sf_readf_float(sound, frame, 1) != 1;
    if (sound)
        sf_close(sound);
    return !file->unproven;
}

/* Seeks to frame `to`, decoding frames before it where that matters. */
static bool go_to(struct st_audio_file *file, uint64_t to)
{
    float dropped[2048];
    const uint64_t most = sizeof dropped / sizeof *dropped / file->channels;
    const uint64_t from = to > file->run_up ? to - file->run_up : 0;
    if (from && !prove(file))
        return false;
    if (from && sf_seek(file->sound, (sf_count_t)from, SEEK_SET) != (sf_count_t)from)
        return false;
    if (file->run_up == 0)
        return true;
    for (uint64_t at = from; at < to;) {
        const uint64_t count = to - at < most ? to - at : most;
        if (sf_readf_float(file->sound, dropped, (sf_count_t)count) != (sf_count_t)count)
            return false;
        at += count;
    }
    return true;
}

int st_audio_file_read(struct st_audio_file *file, uint64_t first, uint64_t frames, float *out,
                       struct stoker_error *err)
{
    if (frames == 0)
        return 0;
    if (!go_to(file, first))
        return st_fail(err, STOKER_ECORRUPT,
                       "frame %llu of the sound cannot be reached: its file is damaged or truncated",
                       (unsigned long long)first);
    const sf_count_t got = sf_readf_float(file->sound, out, (sf_count_t)frames);
    if (got == (sf_count_t)frames)
        return 0;
    return st_fail(err, STOKER_ECORRUPT,
                   "the sound ends after frame %lld, although its header announces more",
                   (long long)first + (got > 0 ? got : 0));
}

void st_audio_file_close(struct st_audio_file *file)
{
    if (!file)
        return;
    if (file->sound)
        sf_close(file->sound);
    free(file);
}
