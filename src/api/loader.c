/* loader.c - the public face of loaders, batches and states
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/publish.h"
#include "api/sized.h"
#include "base/interrupt.h"
#include "gpu/gpu.h"
#include "pipe/executor.h"
#include "pipe/loader.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ST_SIZED(options, stoker_loader_options, jpeg_hardware);
ST_SIZED(epochs, stoker_epoch, first_batch);
ST_SIZED(statistics, stoker_stats, jpeg_hardware_note);
ST_SIZED(worker_statistics, stoker_worker_stats, samples);
ST_SIZED(paths, stoker_decode_path, files);
ST_SIZED(bad_samples, stoker_bad_sample, reason);

static const struct stoker_loader_options default_options = {
    .size = sizeof default_options,
    .batch_size = 1,
    .workers = -1,
    .dtype = STOKER_DTYPE_F32,
    .error_limit = UINT64_MAX,
    .pillow = 13,
    .pixel_limit = 178956970,
};
static const struct stoker_epoch default_epoch = {.size = sizeof default_epoch};

void stoker_loader_options_init(struct stoker_loader_options *opt, size_t size)
{
    st_sized_init(&options, &default_options, opt, size);
}

void stoker_epoch_init(struct stoker_epoch *epoch, size_t size)
{
    st_sized_init(&epochs, &default_epoch, epoch, size);
}

/* "cuda" or "cuda:1"; NULL and "cpu": none. */
static int find_device(const char *name, struct st_devices *out, struct stoker_error *err)
{
    *out =
        (struct st_devices){.ordinal = -1, .pinned = &st_pinned_cuda, .jpeg_hw = &st_jpeg_hw_nvjpeg};
    if (!name || strcmp(name, "cpu") == 0)
        return STOKER_OK;
    const size_t kind = strlen(st_device_cuda.name);
    const char *rest = name + kind;
    if (strncmp(name, st_device_cuda.name, kind) == 0 && (*rest == '\0' || *rest == ':')) {
        char *end = NULL;
        const long number = *rest ? strtol(rest + 1, &end, 10) : -1;
        out->kind = &st_device_cuda;
        out->ordinal = (int32_t)number;
        if (!*rest || (rest[1] >= '0' && rest[1] <= '9' && *end == '\0' && number <= INT16_MAX))
            return STOKER_OK;
    }
    return st_fail(err, STOKER_EINVAL, "device is \"%.100s\"; it may be \"cpu\", \"cuda\" or \"cuda:1\"",
                   name);
}

int stoker_loader_open(struct stoker_loader **out, struct stoker_dataset *data,
                       struct stoker_pipeline *pipe, const struct stoker_loader_options *given,
                       struct stoker_error *err)
{
    struct stoker_loader_options opt = default_options;
    if (!out || !data || !pipe)
        return st_fail(err, STOKER_EINVAL, "stoker_loader_open: out, data and pipe must not be NULL");
    *out = NULL;
    struct st_devices devices;
    int rc = given ? st_sized_take(&options, &opt, given, err) : STOKER_OK;
    if (!rc)
        rc = find_device(opt.device, &devices, err);
    if (!rc)
        rc = st_loader_open(out, data, pipe, &opt, &devices, err);
    if (!rc)
        (*out)->published = st_publish_open();
    return rc;
}

int stoker_loader_start(struct stoker_loader *loader, const struct stoker_epoch *epoch,
                        struct stoker_error *err)
{
    struct stoker_epoch own = default_epoch;
    const int rc = epoch ? st_sized_take(&epochs, &own, epoch, err) : STOKER_OK;
    return rc ? rc : st_loader_start(loader, &own, 0, err);
}

static void publish(const struct stoker_loader *loader)
{
    struct stoker_stats stats = {.size = sizeof stats};
    if (st_publish_is_due(loader->published) && !stoker_loader_stats(loader, &stats))
        st_publish(loader->published, &stats, loader->epoch.batches);
}

int stoker_loader_next(struct stoker_loader *loader, const struct stoker_batch **out,
                       struct stoker_error *err)
{
    const int rc = st_loader_next(loader, out, err);
    if (!rc)
        publish(loader);
    return rc;
}

void stoker_loader_interrupt(struct stoker_loader *loader) { st_loader_interrupt(loader); }

void stoker_loader_on_failure(struct stoker_loader *loader, stoker_failure_callback *callback,
                              void *context)
{
    st_loader_on_failure(loader, callback, context);
}

void stoker_thread_on_wait(stoker_wait_callback *asked, void *context)
{
    st_interrupt_set(asked, context);
}

void stoker_batch_release(const struct stoker_batch *batch) { st_batch_release(batch, NULL); }

void stoker_batch_release_on(const struct stoker_batch *batch, uintptr_t stream)
{
    st_batch_release(batch, &stream);
}

void stoker_batch_mark(const struct stoker_batch *batch, uintptr_t stream)
{
    st_batch_mark(batch, stream);
}

int stoker_batch_join(const struct stoker_batch *batch, uintptr_t stream, struct stoker_error *err)
{
    return st_batch_join(batch, stream, err);
}

int stoker_batch_sync(const struct stoker_batch *batch, struct stoker_error *err)
{
    return st_batch_sync(batch, err);
}

uint64_t stoker_loader_batch_count(const struct stoker_loader *loader) { return loader->epoch.batches; }

uint32_t stoker_loader_worker_count(const struct stoker_loader *loader) { return loader->worker_count; }

void stoker_loader_close(struct stoker_loader *loader)
{
    if (!loader || loader->owner != getpid())
        return;
    st_publish_close(loader->published);
    loader->published = NULL;
    st_loader_close(loader);
}

/* The handles below are const for the caller; inside, looking takes the lock. */
static struct stoker_loader *inside(const struct stoker_loader *loader)
{
    return (struct stoker_loader *)(uintptr_t)loader;
}

int stoker_loader_save(const struct stoker_loader *loader, struct stoker_state *out,
                       struct stoker_error *err)
{
    return st_loader_save(inside(loader), out, err);
}

int stoker_loader_restore(struct stoker_loader *loader, const struct stoker_state *state,
                          const struct stoker_epoch *epoch, struct stoker_error *err)
{
    struct stoker_epoch own = default_epoch;
    const int rc = epoch ? st_sized_take(&epochs, &own, epoch, err) : STOKER_OK;
    return rc ? rc : st_loader_restore(loader, state, &own, err);
}

int stoker_loader_stats(const struct stoker_loader *loader, struct stoker_stats *out)
{
    struct stoker_stats stats = {0};
    const int rc = st_loader_check_owner(loader, NULL);
    if (rc)
        return rc;
    st_loader_stats(inside(loader), &stats);
    stats.source_note = stoker_dataset_note(loader->data);
    return st_sized_give(&statistics, &stats, out, NULL);
}

bool stoker_loader_worker_stats_at(const struct stoker_loader *loader, uint32_t worker,
                                   struct stoker_worker_stats *out)
{
    struct stoker_worker_stats stats = {0};
    if (worker >= loader->worker_count && !(worker == 0 && loader->worker_count == 0))
        return false;
    struct st_worker *w = &inside(loader)->worker[worker];
    for (int stage = 0; stage < STOKER_STAGE_COUNT; stage++)
        stats.stage_ns[stage] = atomic_load_explicit(&w->stage_ns[stage], memory_order_relaxed);
    stats.samples = atomic_load_explicit(&w->samples, memory_order_relaxed);
    return !st_sized_give(&worker_statistics, &stats, out, NULL);
}

bool stoker_loader_decode_path_at(const struct stoker_loader *loader, uint32_t k,
                                  struct stoker_decode_path *out)
{
    for (uint32_t codec = 0; st_codecs[codec]; codec++)
        for (uint32_t path = 0; path < ST_PATHS_MAX; path++) {
            const uint64_t files = st_loader_files(inside(loader), codec, path);
            if (files == 0 || k-- > 0)
                continue;
            const struct st_codec *c = st_codecs[codec];
            const struct stoker_decode_path found = {
                sizeof found, c->name, c->path_name ? c->path_name(path) : "decoded", files};
            return !st_sized_give(&paths, &found, out, NULL);
        }
    return false;
}

bool stoker_loader_bad_sample_at(const struct stoker_loader *loader, uint64_t k,
                                 struct stoker_bad_sample *out)
{
    struct stoker_bad_sample entry = {0};
    return st_loader_check_owner(loader, NULL) == 0 && st_loader_bad(inside(loader), k, &entry) &&
           !st_sized_give(&bad_samples, &entry, out, NULL);
}
