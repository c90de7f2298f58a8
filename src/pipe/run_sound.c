/* run_sound.c - runs the pipeline on one sound: from its bytes to its row of the slot
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/text.h"
#include "pipe/gate.h"
#include "pipe/run.h"
#include "pipe/steps.h"

#include <string.h>

static int run_steps(const struct st_steps *steps, const struct st_rng_key *rng_key,
                     struct st_audio *audio, struct stoker_error *err)
{
    int rc = 0;
    for (uint32_t k = 0; !rc && k < steps->count; k++) {
        const struct st_step *step = &steps->step[k];
        if (step->op->holds) {
            uint8_t order[ST_HELD_MAX];
            const uint32_t count = st_steps_choose(step, rng_key, order);
            for (uint32_t at = 0; !rc && at < count; at++)
                rc = run_steps(&(struct st_steps){&step->inner.step[order[at]], 1}, rng_key, audio, err);
        } else {
            struct st_rng rng;
            st_rng_init(&rng, rng_key->seed, rng_key->epoch, rng_key->key, step->number);
            rc = step->op->run_audio(step->self, &rng, audio, err);
        }
    }
    return rc;
}

static int place(struct st_worker *worker, const struct st_audio *audio, struct st_slot *slot,
                 uint32_t row, struct stoker_error *err)
{
    const uint64_t each = st_audio_values(audio) * sizeof(float);
    const int rc = slot->item ? st_gate_row(worker, each * audio->channels, err) : 0;
    if (rc)
        return rc;
    uint8_t *to = st_slot_place_sound(slot, row, audio->channels, audio->bins, audio->frames);
    if (!to)
        return st_fail(err, STOKER_ENOMEM, "no memory for a sound of %llu frames",
                       (unsigned long long)audio->frames);
    for (uint32_t c = 0; c < audio->channels; c++)
        memcpy(to + c * each, audio->data + c * audio->stride, each);
    return 0;
}

int st_run_sound(struct st_worker *worker, struct st_bytes bytes, uint64_t key, struct st_slot *slot,
                 uint32_t row, struct stoker_error *err)
{
    const struct stoker_loader *loader = worker->loader;
    const struct st_rng_key rng_key = {
        .seed = slot->seeds[row], .epoch = loader->epoch.number, .key = key};
    const struct st_audio_shape *plan = &loader->pipe->sound;
    struct st_audio audio;
    worker->sound.arena = &worker->work.arena;
    worker->sound.limit = loader->opt.pixel_limit;
    worker->sound.decode_ns = 0;
    int rc = st_audio_open(&audio, &worker->sound, bytes, err);
    if (!rc) /* room for the sound, an op's output and the row */
        rc = st_gate_decode(worker, slot, row,
                            st_scratch_for(3 * sizeof(float), audio.channels, audio.frames), err);
    if (!rc)
        rc = run_steps(&loader->pipe->steps, &rng_key, &audio, err);
    if (!rc)
        rc = st_audio_load(&audio, err);
    st_audio_close(&audio);
    worker->work.decode_ns += worker->sound.decode_ns;
    if (rc)
        return rc;
    if (plan->frames >= 0 && (uint64_t)plan->frames != audio.frames)
        return st_fail(err, STOKER_EINVAL, "the pipeline gave %llu frame%s instead of the planned %lld",
                       (unsigned long long)audio.frames, st_s(audio.frames), (long long)plan->frames);
    if (plan->channels >= 0 && (uint32_t)plan->channels != audio.channels)
        return st_fail(err, STOKER_EINVAL, "the pipeline gave %u channel%s instead of the planned %d",
                       audio.channels, st_s(audio.channels), plan->channels);
    if (loader->sound_channels >= 0 && (uint32_t)loader->sound_channels != audio.channels)
        return st_fail(err, STOKER_EINVAL,
                       "this sound has %u channel%s, but the first one of the dataset has %d: add Mono "
                       "(audio_mono) or Channels (audio_channels) to the transform",
                       audio.channels, st_s(audio.channels), loader->sound_channels);
    return place(worker, &audio, slot, row, err);
}
