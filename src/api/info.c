/* info.c - statuses in words, pipelines, and what this build can do
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/cpu.h"
#include "codec/audio.h"
#include "codec/codec.h"
#include "gpu/gpu.h"
#include "pipe/spec.h"
#include "st_config.h"

const char *stoker_version(void) { return ST_VERSION; }

uint32_t stoker_cpus(void) { return st_cpu_count(); }

const char *stoker_status_name(int status)
{
    switch (status) {
#define X(name, value, text)                                                                               \
    case value: return #name;
        STOKER_STATUS_MAP(X)
#undef X
    }
    return "unknown";
}

const char *stoker_status_text(int status)
{
    switch (status) {
#define X(name, value, text)                                                                               \
    case value: return text;
        STOKER_STATUS_MAP(X)
#undef X
    }
    return "a status this version does not know";
}

int stoker_pipeline_open(struct stoker_pipeline **out, const char *text, struct stoker_error *err)
{
    if (!out || !text)
        return st_fail(err, STOKER_EINVAL, "stoker_pipeline_open: out and text must not be NULL");
    return st_pipeline_open(out, text, err);
}

void stoker_pipeline_close(struct stoker_pipeline *pipe) { st_pipeline_drop(pipe); }

bool stoker_op_at(uint32_t index, struct stoker_op_info *out)
{
    for (uint32_t k = 0; st_ops[k]; k++)
        if (k == index) {
            *out = (struct stoker_op_info){.name = st_ops[k]->name, .help = st_ops[k]->help};
            return true;
        }
    return false;
}

bool stoker_feature_at(uint32_t index, struct stoker_feature *out)
{
    uint32_t at = 0;
    for (const struct st_codec *const *codec = st_codecs; *codec; codec++)
        if (at++ == index) {
            *out = (struct stoker_feature){
                "codec", (*codec)->name, (*codec)->library ? (*codec)->library() : "built in", true};
            return true;
        }
    for (const struct st_codec_missing *none = st_codecs_missing; none->name; none++)
        if (at++ == index) {
            *out = (struct stoker_feature){"codec", none->name, none->library, false};
            return true;
        }
    struct st_audio_format format;
    for (uint32_t k = 0; st_audio_format_at(k, &format); k++)
        if (at++ == index) {
            *out = (struct stoker_feature){"audio", format.name, format.detail, format.present};
            return true;
        }
    if (at++ == index) {
        *out = (struct stoker_feature){"kernels", st_cpu_level_name(st_cpu_level()),
                                       "the best this CPU and STOKER_CPU allow", true};
        return true;
    }
    if (at++ == index) {
        *out = (struct stoker_feature){"reader", "io_uring",
                                       ST_HAVE_URING ? "where the kernel allows it, else a pool of threads"
                                                     : "built without liburing: a pool of threads reads",
                                       ST_HAVE_URING};
        return true;
    }
    return index >= at && st_gpu_info(index - at, out);
}
