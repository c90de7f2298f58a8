/* run_sound.c - pipelines whose samples are sounds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/audio.h"
#include "base/text.h"
#include "pipe/steps.h"

#include <string.h>

/* ---- the plan ------------------------------------------------------------------------------------ */

static int plan_steps(struct st_steps *steps, struct st_audio_shape *shape, struct stoker_error *err);

/* Inner ops run for only some sounds, so they must not change the shape. */
static int plan_holder(struct st_step *step, const struct st_audio_shape *shape,
                       struct stoker_error *err)
{
    struct st_audio_shape after = *shape;
    const int rc = plan_steps(&step->inner, &after, err);
    if (rc)
        return rc;
    if (after.channels != shape->channels || after.rate != shape->rate ||
        after.frames != shape->frames || after.bins != shape->bins)
        return st_fail(err, STOKER_EINVAL,
                       "pipeline: the ops in %s would change the shape of only some sounds",
                       step->op->name);
    return 0;
}

static int plan_steps(struct st_steps *steps, struct st_audio_shape *shape, struct stoker_error *err)
{
    int rc = 0;
    for (uint32_t k = 0; !rc && k < steps->count; k++) {
        struct st_step *step = &steps->step[k];
        if (step->op->holds)
            rc = plan_holder(step, shape, err);
        else if (!step->op->run_audio)
            rc = st_fail(err, STOKER_EINVAL,
                         "pipeline: %s works on images and cannot follow an op on sounds",
                         step->op->name);
        else if (step->op->plan_audio)
            rc = step->op->plan_audio(step->self, shape, err);
    }
    return rc;
}

int st_audio_plan(struct stoker_pipeline *pipe, struct stoker_error *err)
{
    struct st_audio_shape *sound = &pipe->sound;
    *sound = (struct st_audio_shape){.channels = -1, .rate = -1, .frames = -1};
    const int rc = plan_steps(&pipe->steps, sound, err);
    const bool one_size = sound->channels > 0 && sound->frames > 0 && sound->frames <= INT32_MAX;
    const int32_t lines = sound->bins ? sound->bins : 1;
    /* Slots and devices treat a sound as an image of one channel: the rows of its channels, stacked. */
    pipe->shape = (struct st_shape){.width = one_size ? (int32_t)sound->frames : -1,
                                    .height = one_size ? lines * sound->channels : -1,
                                    .channels = 1,
                                    .tensor = true};
    pipe->finish = (struct st_finish_spec){.scaled = true, .dtype = STOKER_DTYPE_F32};
    return rc;
}

int st_audio_check(const struct stoker_loader_options *opt, struct stoker_error *err)
{
    if ((opt->dtype_given && opt->dtype != STOKER_DTYPE_F32) || opt->layout != STOKER_LAYOUT_NCHW)
        return st_fail(err, STOKER_EINVAL,
                       "sounds are returned as float32, channels first: omit dtype and layout");
    return 0;
}

/* ---- one sound ----------------------------------------------------------------------------------- */

static int run_steps(const struct st_steps *steps, const struct st_rng_key *rng_key,
                     struct st_audio *audio, struct stoker_error *err)
{
    int rc = 0;
    for (uint32_t k = 0; !rc && k < steps->count; k++) {
        const struct st_step *step = &steps->step[k];
        struct st_rng rng;
        st_rng_init(&rng, rng_key->seed, rng_key->epoch, rng_key->key, step->number);
        if (!step->op->holds)
            rc = step->op->run_audio(step->self, &rng, audio, err);
        else if (step->op->chosen(step->self, &rng))
            rc = run_steps(&step->inner, rng_key, audio, err);
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

int st_audio_make(struct st_worker *worker, struct st_bytes bytes, uint64_t key, struct st_slot *slot,
                  uint32_t row, struct stoker_error *err)
{
    const struct stoker_loader *loader = worker->loader;
    const struct st_rng_key rng_key = {slot->seeds[row], loader->epoch.number, key};
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
