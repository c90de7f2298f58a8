/* model.c - learns from a sample what all samples of a batch must have in common
 *
 * The arrays of a field become one tensor or a list of one type, and the sounds of a batch have the same
 * number of channels; a sample that differs is bad. Which samples are bad must depend on the dataset
 * alone. If the first sample to arrive set the standard, it would depend on the number of threads; if it
 * were the first row of a batch or the majority, a sample would be good in one epoch and bad in the
 * next, and a batch of one could never be bad. So the first sample of the dataset, or the first after
 * it that can be read, is the model for all. This costs one read when a loader is opened, and only for
 * datasets that do not declare these properties (arrays in tar files, sounds whose pipeline keeps their
 * channels).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/alone.h"
#include "pipe/gate.h"
#include "pipe/opening.h"

enum { LOOKS = 64 }; /* give up after this many unreadable samples */

static bool learns_sounds(const struct stoker_loader *loader)
{
    return loader->pipe->sounds && loader->pipe->sound.channels < 0;
}

static bool learns_type(const struct stoker_loader *loader, uint32_t column)
{
    return loader->columns.column[column].dtype == ST_TYPE_UNKNOWN;
}

static bool has_to_learn(const struct stoker_loader *loader)
{
    bool any = learns_sounds(loader);
    for (uint32_t k = 0; k < loader->columns.count; k++)
        any = any || learns_type(loader, k);
    return any;
}

static int channels_of(struct st_worker *worker, struct st_bytes bytes, uint32_t *out,
                       struct stoker_error *err)
{
    struct st_audio audio;
    worker->sound.arena = &worker->work.arena;
    worker->sound.limit = worker->loader->opt.pixel_limit;
    const int rc = st_audio_open(&audio, &worker->sound, bytes, err);
    *out = audio.channels;
    st_audio_close(&audio);
    st_arena_reset(&worker->work.arena);
    return rc;
}

/* Learns everything from this sample, or nothing. No other worker has anything yet. */
static int learn_from(struct stoker_loader *loader, uint64_t sample, struct stoker_error *err)
{
    struct st_worker *worker = &loader->worker[0];
    struct st_columns_plan *plan = &loader->columns;
    const struct stoker_dataset *data = loader->data;
    struct st_piece pieces[ST_FIELDS_MAX] = {0};
    struct st_bytes bytes;
    uint32_t channels = 0;
    int rc = st_read_sample(loader->data, sample, &worker->bytes, &bytes, err);
    if (!rc && plan->fields)
        rc = data->source->split(data->self, sample, bytes, &worker->pieces, pieces, err);
    if (!rc && learns_sounds(loader))
        rc = channels_of(worker, plan->fields && plan->image >= 0 ? pieces[plan->image].bytes : bytes,
                         &channels, err);
    if (rc) /* a sample too large for max_memory cannot be the model, but the next one may be */
        return st_gate_refused(worker, rc, err);
    for (uint32_t k = 0; k < plan->count; k++)
        if (learns_type(loader, k))
            plan->column[k].dtype = (int32_t)pieces[plan->column[k].field].dtype;
    if (learns_sounds(loader))
        loader->sound_channels = (int32_t)channels;
    return 0;
}

/* Whether this sample is bad, and the next one may be the model. */
static bool goes_on(int rc) { return rc && rc != STOKER_ENOMEM && !st_is_transient(rc); }

int st_model_learn(struct stoker_loader *loader, struct stoker_error *err)
{
    struct st_worker *worker = &loader->worker[0];
    loader->sound_channels = learns_sounds(loader) && loader->opt.batch_size > 1 ? 0 : -1;
    for (uint32_t k = 0; loader->opt.batch_size == 1 && k < loader->columns.count; k++)
        if (learns_type(loader, k))
            loader->columns.column[k].dtype = ST_TYPE_ANY;
    if (loader->opt.batch_size == 1 || !has_to_learn(loader))
        return 0;
    worker->alone = true;
    worker->memory.limit = loader->gate.sample_limit;
    int rc = STOKER_ECORRUPT;
    for (uint64_t sample = 0; goes_on(rc) && sample < LOOKS && sample < loader->dataset_count; sample++)
        rc = learn_from(loader, sample, err);
    worker->alone = false;
    worker->memory.limit = loader->gate.shared_limit;
    st_alone_shed(worker);
    return goes_on(rc) ? 0 : rc; /* if none is readable, every sample is bad, and each is reported */
}
