/* bench_measure.c - the measurements of `stoker bench`: reading, decoding, the whole pipeline
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench.h"

#include "base/clock.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/pack/pack.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_BYTES ((uint64_t)128 << 20)

static double seconds_since(uint64_t start_ns) { return (double)(st_now_ns() - start_ns) / 1e9; }

enum bench_media bench_media_of(const struct stoker_dataset *data, uint32_t *field)
{
    struct st_field fields[ST_FIELDS_MAX];
    const uint32_t count = pack_fields(data, fields);
    for (*field = 0; *field < count; ++*field)
        if (fields[*field].kind == ST_FIELD_IMAGE)
            return BENCH_IMAGES;
    for (*field = 0; *field < count; ++*field)
        if (fields[*field].kind == ST_FIELD_AUDIO)
            return BENCH_SOUNDS;
    return BENCH_NEITHER;
}

/* Keeps a copy; pixels that were stored raw have nothing to decode. */
static int keep(struct bench_files *files, const struct st_piece *piece, uint64_t sample,
                struct stoker_error *err)
{
    const size_t size = piece->bytes.size;
    if (piece->ndim || files->bytes > KEEP_BYTES)
        return STOKER_OK;
    void *copy = malloc(size ? size : 1);
    struct bench_file *grown = realloc(files->file, (files->count + 1) * sizeof *grown);
    files->file = grown ? grown : files->file;
    if (!copy || !grown) {
        free(copy);
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    }
    if (size)
        memcpy(copy, piece->bytes.data, size);
    files->file[files->count++] = (struct bench_file){copy, size, sample};
    return STOKER_OK;
}

int bench_read(struct bench_files *files, struct stoker_dataset *data, double seconds,
               struct stoker_error *err)
{
    *files = (struct bench_files){0};
    uint32_t field;
    const enum bench_media media = bench_media_of(data, &field);
    struct st_buffer raw = {0}, scratch = {0};
    struct progress bar;
    progress_begin(&bar, "reading");
    const uint64_t count = stoker_dataset_count(data), start = st_now_ns();
    int rc = STOKER_OK;
    for (uint64_t i = 0; rc == STOKER_OK && i < count; i++) {
        if (i > 0 && seconds_since(start) > seconds)
            break;
        /* Spread over the whole set: neighbours in a folder are often similar. */
        const uint64_t sample = i * 2654435761u % count, before = st_now_ns();
        struct st_piece pieces[ST_FIELDS_MAX];
        uint64_t bytes = 0;
        if (pack_read(data, sample, &raw, &scratch, pieces, &bytes, err)) {
            files->failed++;
            continue;
        }
        files->seconds += seconds_since(before);
        files->reads++;
        files->bytes += bytes;
        if (media != BENCH_NEITHER)
            rc = keep(files, &pieces[field], sample, err);
        progress_show(&bar, seconds_since(start) / seconds);
    }
    progress_end(&bar);
    st_buffer_free(&raw);
    st_buffer_free(&scratch);
    if (rc == STOKER_OK && !files->reads)
        rc = files->failed ? err->code : st_fail(err, STOKER_EINVAL, "the dataset has no samples");
    return rc;
}

void bench_free(struct bench_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->file[i].data);
    free(files->file);
    *files = (struct bench_files){0};
}

static int decode(const struct bench_file *file, enum bench_media media, const char *name,
                  struct stoker_error *err)
{
    struct stoker_image image;
    struct pack_sound sound;
    if (media == BENCH_SOUNDS)
        return pack_sound_look(&sound, (struct st_bytes){file->data, file->size}, true, err);
    const int rc = stoker_image_decode(&image, file->data, file->size, name, NULL, err);
    if (rc == STOKER_OK)
        stoker_image_close(&image);
    return rc;
}

int bench_decode(const struct bench_files *files, const struct stoker_dataset *data, double seconds,
                 double *rate, uint64_t *bad, struct stoker_error *err)
{
    struct progress bar;
    progress_begin(&bar, "decoding");
    uint32_t field;
    const enum bench_media media = bench_media_of(data, &field);
    const uint64_t start = st_now_ns();
    uint64_t done = 0;
    *bad = 0;
    for (size_t i = 0; files->count > 0 && seconds_since(start) < seconds; i++) {
        const struct bench_file *file = &files->file[i % files->count];
        char name[PATH_MAX];
        stoker_dataset_name(data, file->sample, name, sizeof name);
        if (decode(file, media, name, err) == STOKER_OK) {
            done++;
        } else if (++*bad >= files->count && done == 0) {
            progress_end(&bar);
            return err->code; /* none can be decoded: report the last error */
        }
        progress_show(&bar, seconds_since(start) / seconds);
    }
    *rate = (double)done / seconds_since(start);
    progress_end(&bar);
    return STOKER_OK;
}

int bench_pipeline(struct bench_pipeline *out, struct stoker_dataset *data, struct stoker_pipeline *pipe,
                   const struct stoker_loader_options *opt, double seconds, const char *label,
                   struct stoker_error *err)
{
    struct stoker_loader *loader;
    struct stoker_epoch epoch = stoker_epoch_defaults();
    struct progress bar;
    uint64_t samples = 0, batches = 0, first_ns = 0;
    int rc = stoker_loader_open(&loader, data, pipe, opt, err);
    if (rc != STOKER_OK)
        return rc;
    progress_begin(&bar, label);
    const uint64_t start = st_now_ns();
    rc = stoker_loader_start(loader, &epoch, err);
    while (rc == STOKER_OK && (batches < 2 || seconds_since(start) < seconds)) {
        const struct stoker_batch *batch;
        rc = stoker_loader_next(loader, &batch, err);
        if (rc == STOKER_END && batches > 0) {
            epoch.epoch++;
            rc = stoker_loader_start(loader, &epoch, err);
            continue;
        }
        if (rc == STOKER_END)
            rc = st_fail(err, STOKER_EINVAL, "the dataset has no batches");
        if (rc != STOKER_OK)
            break;
        if (batches++ == 0)
            first_ns = st_now_ns(); /* the first batch fills the pipeline: not part of the rate */
        else
            samples += batch->count;
        stoker_batch_release(batch);
        progress_show(&bar, seconds_since(start) / seconds);
    }
    if (rc == STOKER_OK) {
        out->rate = (double)samples / seconds_since(first_ns);
        out->first_batch_seconds = (double)(first_ns - start) / 1e9;
        out->stats.size = sizeof out->stats;
        rc = stoker_loader_stats(loader, &out->stats);
    }
    progress_end(&bar);
    stoker_loader_close(loader);
    return rc;
}
