/* bench_measure.c - the measurements of `stoker bench`: reading, decoding, the whole pipeline
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench.h"

#include "base/clock.h"
#include "base/err.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEEP_BYTES      ((uint64_t)128 << 20)
#define FILE_BYTES_MOST ((off_t)1 << 30)

static double seconds_since(uint64_t start_ns) { return (double)(st_now_ns() - start_ns) / 1e9; }

static int read_all(int fd, char *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        const ssize_t got = read(fd, data + at, size - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0)
            return EIO; /* shorter than its size */
        at += (size_t)got;
    }
    return 0;
}

static int read_file(const char *path, void **data, size_t *size, struct stoker_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return st_fail_errno(err, errno, "%s", path);
    struct stat about;
    int why = fstat(fd, &about) < 0 ? errno : 0;
    if (!why && (about.st_size < 0 || about.st_size > FILE_BYTES_MOST))
        why = EFBIG;
    *size = why ? 0 : (size_t)about.st_size;
    *data = why ? NULL : malloc(*size ? *size : 1);
    if (!why)
        why = *data ? read_all(fd, *data, *size) : ENOMEM;
    close(fd);
    if (!why)
        return STOKER_OK;
    free(*data);
    *data = NULL;
    return st_fail_errno(err, why, "%s", path);
}

static int keep(struct bench_files *files, void *data, size_t size, uint64_t sample)
{
    struct bench_file *grown = realloc(files->file, (files->count + 1) * sizeof *grown);
    if (!grown)
        return STOKER_ENOMEM;
    files->file = grown;
    files->file[files->count++] = (struct bench_file){data, size, sample};
    return STOKER_OK;
}

int bench_read(struct bench_files *files, const struct stoker_dataset *data, double seconds,
               struct stoker_error *err)
{
    *files = (struct bench_files){0};
    struct progress bar;
    progress_begin(&bar, "reading");
    const uint64_t count = stoker_dataset_count(data), start = st_now_ns();
    int rc = STOKER_OK;
    for (uint64_t i = 0; rc == STOKER_OK && i < count; i++) {
        files->seconds = seconds_since(start);
        if (files->seconds > seconds && i > 0)
            break;
        char path[PATH_MAX];
        void *bytes;
        size_t size = 0;
        /* Spread over the whole set: neighbours in a folder are often similar. */
        const uint64_t sample = i * 2654435761u % count;
        if (stoker_dataset_name(data, sample, path, sizeof path) >= sizeof path)
            continue;
        rc = read_file(path, &bytes, &size, err);
        if (rc != STOKER_OK)
            break;
        files->reads++;
        files->bytes += size;
        if (files->bytes <= KEEP_BYTES)
            rc = keep(files, bytes, size, sample);
        if (rc != STOKER_OK || files->bytes > KEEP_BYTES)
            free(bytes);
        if (rc != STOKER_OK)
            st_fail(err, rc, "out of memory");
        progress_show(&bar, seconds_since(start) / seconds);
    }
    files->seconds = seconds_since(start);
    progress_end(&bar);
    return rc;
}

void bench_free(struct bench_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->file[i].data);
    free(files->file);
    *files = (struct bench_files){0};
}

int bench_decode(const struct bench_files *files, const struct stoker_dataset *data, double seconds,
                 double *rate, uint64_t *bad, struct stoker_error *err)
{
    struct progress bar;
    progress_begin(&bar, "decoding");
    const uint64_t start = st_now_ns();
    uint64_t done = 0;
    *bad = 0;
    for (size_t i = 0; files->count > 0 && seconds_since(start) < seconds; i++) {
        const struct bench_file *file = &files->file[i % files->count];
        char name[PATH_MAX];
        struct stoker_image image;
        stoker_dataset_name(data, file->sample, name, sizeof name);
        if (stoker_image_decode(&image, file->data, file->size, name, NULL, err) == STOKER_OK) {
            stoker_image_close(&image);
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
