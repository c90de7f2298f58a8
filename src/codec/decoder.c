/* decoder.c - chooses the codec for a file, and enforces the pixel limit
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/codec.h"
#include "base/text.h"
#include "codec/kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A codec's state is allocated for the first file of its kind. A codec without state gets a pointer that
 * is never dereferenced. */
static int codec_state(struct st_decoder *decoder, uint32_t codec, void **out, struct stoker_error *err)
{
    if (!decoder->state[codec]) {
        decoder->state[codec] = st_calloc(1, st_codecs[codec]->state_size);
        if (!decoder->state[codec])
            return st_fail(err, STOKER_ENOMEM, "%s: out of memory", st_codecs[codec]->name);
    }
    *out = decoder->state[codec];
    return STOKER_OK;
}

static int fail_unknown(struct st_bytes in, struct stoker_error *err)
{
    char first[3 * 8 + 1] = "";
    if (in.size == 0)
        return st_fail(err, STOKER_ECORRUPT, "the file is empty (0 bytes)");
    for (const struct st_codec_missing *missing = st_codecs_missing; missing->name; missing++)
        if (missing->probe(in.data, in.size))
            return st_fail(err, STOKER_EUNSUPPORTED,
                           "a %s image, but this build has no %s: install it and rebuild",
                           missing->name, missing->library);
    const struct st_kind *kind = st_kind_of(in);
    if (kind)
        return st_fail(err, STOKER_EUNSUPPORTED, "this is %s, which is not supported; %s", kind->name,
                       kind->remedy);
    for (size_t k = 0; k < in.size && k < 8; k++)
        snprintf(first + 3 * k, 4, " %02x", in.data[k]);
    return st_fail(err, STOKER_ECORRUPT, "not an image in a known format (%zu byte%s, starting with%s)",
                   in.size, st_s(in.size), first);
}

int st_decoder_header(struct st_decoder *decoder, struct st_bytes in, uint32_t *codec,
                      struct st_header *out, struct stoker_error *err)
{
    uint32_t k = 0;
    void *state = NULL;
    while (st_codecs[k] && !st_codecs[k]->probe(in.data, in.size))
        k++;
    if (!st_codecs[k])
        return fail_unknown(in, err);
    int rc = codec_state(decoder, k, &state, err);
    if (rc < 0)
        return rc;
    rc = st_codecs[k]->header(state, in, out, err);
    if (rc < 0)
        return rc;
    const uint64_t pixels = (uint64_t)out->width * out->height;
    if (decoder->pixel_limit && pixels > decoder->pixel_limit)
        return st_fail(err, STOKER_ELIMIT,
                       "%s: %u x %u pixels exceed pixel_limit (%" PRIu64
                       "); raise it to allow larger images",
                       st_codecs[k]->name, out->width, out->height, decoder->pixel_limit);
    *codec = k;
    return STOKER_OK;
}

int st_decoder_decode(struct st_decoder *decoder, uint32_t codec, struct st_bytes in,
                      const struct st_decode *how, struct st_arena *arena, struct st_view *out,
                      struct stoker_error *err)
{
    void *state = NULL;
    uint32_t path = 0;
    struct st_decode told = *how;
    int rc = codec_state(decoder, codec, &state, err);
    if (rc < 0)
        return rc;
    told.path = &path;
    rc = st_codecs[codec]->decode(state, in, &told, arena, out, err);
    if (rc >= 0)
        atomic_fetch_add_explicit(&decoder->files[codec][path % ST_PATHS_MAX], 1, memory_order_relaxed);
    return rc;
}

void st_decoder_close(struct st_decoder *decoder)
{
    for (uint32_t k = 0; st_codecs[k]; k++) {
        if (decoder->state[k] && st_codecs[k]->close)
            st_codecs[k]->close(decoder->state[k]);
        free(decoder->state[k]);
        decoder->state[k] = NULL;
    }
}
