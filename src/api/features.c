/* features.c - what this build can do, in words
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/sized.h"
#include "base/cpu.h"
#include "codec/audio.h"
#include "codec/codec.h"
#include "gpu/gpu.h"
#include "st_config.h"

ST_SIZED(feature_list, stoker_feature, detail);

#define FEATURE(about, title, text, has)                                                                \
    {                                                                                                   \
        .size = sizeof(struct stoker_feature), .present = (has), .kind = (about), .name = (title),      \
        .detail = (text)                                                                                \
    }

/* A version is "" if the build does without the library. */
#define LIBRARY(title, version, does, without)                                                          \
    FEATURE("library", title, sizeof version > 1 ? version ": " does : without, sizeof version > 1)

static const struct stoker_feature libraries[] = {
    LIBRARY("HDF5", ST_WITH_HDF5,
            "HDF5 files; Stoker decodes deflate, shuffle, LZF and Fletcher32 in parallel, libhdf5 the "
            "other filters",
            "HDF5 files cannot be opened: build with libhdf5"),
    LIBRARY("LMDB", ST_WITH_LMDB, "LMDB databases, even while others write to them",
            "LMDB databases can be read while nobody writes to them; for more, build with liblmdb"),
    LIBRARY("libcurl", ST_WITH_CURL, "datasets at http://, https:// and s3:// URLs",
            "datasets at URLs cannot be opened: build with libcurl 7.86 or newer"),
    LIBRARY("zstd", ST_WITH_ZSTD, "archives, members and tables compressed with zstd",
            "data compressed with zstd cannot be read: build with libzstd"),
    LIBRARY("libdeflate", ST_WITH_DEFLATE,
            "decompresses gzip files, zip members and HDF5 chunks faster than zlib",
            "zlib decompresses instead, more slowly"),
    LIBRARY("libsndfile", ST_WITH_SNDFILE, "the audio formats listed above",
            "sounds cannot be decoded: build with libsndfile"),
};

static bool codec_at(uint32_t index, struct stoker_feature *out)
{
    uint32_t present = 0, missing = 0;
    while (st_codecs[present])
        present++;
    while (st_codecs_missing[missing].name)
        missing++;
    if (index < present) {
        const struct st_codec *codec = st_codecs[index];
        *out = (struct stoker_feature)FEATURE("codec", codec->name,
                                              codec->based_on ? codec->based_on() : "built in", true);
    } else if (index - present < missing) {
        const struct st_codec_missing *none = &st_codecs_missing[index - present];
        *out = (struct stoker_feature)FEATURE("codec", none->name, none->library, false);
    }
    return index < present + missing;
}

static bool audio_at(uint32_t index, struct stoker_feature *out)
{
    struct st_audio_format format;
    if (!st_audio_format_at(index, &format))
        return false;
    *out = (struct stoker_feature)FEATURE("audio", format.name, format.detail, format.present);
    return true;
}

static bool library_at(uint32_t index, struct stoker_feature *out)
{
    if (index >= sizeof libraries / sizeof *libraries)
        return false;
    *out = libraries[index];
    return true;
}

static bool kernels_at(uint32_t index, struct stoker_feature *out)
{
    *out = (struct stoker_feature)FEATURE("kernels", st_cpu_level_name(st_cpu_level()),
                                          "the best that this CPU and STOKER_CPU allow", true);
    return index == 0;
}

static bool reader_at(uint32_t index, struct stoker_feature *out)
{
    *out = (struct stoker_feature)FEATURE("reader", "io_uring",
                                          ST_HAVE_URING
                                              ? "where the kernel allows it, else a pool of threads"
                                              : "built without liburing: a pool of threads reads",
                                          ST_HAVE_URING);
    return index == 0;
}

bool stoker_feature_at(uint32_t index, struct stoker_feature *out)
{
    static bool (*const kinds[])(uint32_t, struct stoker_feature *) = {
        codec_at, audio_at, library_at, kernels_at, reader_at, st_gpu_info,
    };
    struct stoker_feature feature;
    for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint32_t count = 0;
        if (kinds[k](index, &feature))
            return !st_sized_give(&feature_list, &feature, out, NULL);
        while (kinds[k](count, &feature))
            count++;
        index -= count; /* the place among the kinds that follow */
    }
    return false;
}
