/* jpeg_threads.h - a device's JPEG hardware as another kind of worker
 *
 * A JPEG thread takes tickets like any worker, but several at once: it makes each image's random
 * draws, has the hardware decode what is needed of the files, and writes jobs that start from there.
 * Files that the hardware does not support, or fails to decode, are processed by the thread as by any
 * worker.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_JPEG_THREADS_H
#define ST_PIPE_JPEG_THREADS_H

#include "pipe/executor.h"

/* Decides whether the loader uses the hardware; `kind` may be NULL. Called before the slots are made. */
int st_jpeg_threads_open(struct stoker_loader *loader, const struct st_jpeg_hw_kind *kind,
                    struct stoker_error *err);
/* Starts the threads, after the workers and the reader. They open the hardware, which takes a while; if
 * that or a thread's start fails, less of it is used, which is noted and not an error. */
void st_jpeg_threads_start(struct stoker_loader *loader);
/* The loader is closing: joins the threads and frees everything. */
void st_jpeg_threads_close(struct stoker_loader *loader);
/* Maximum number of tickets that all JPEG threads together may hold. */
uint32_t st_jpeg_threads_tickets(const struct stoker_loader *loader);
/* Lock held: */
uint64_t st_jpeg_threads_files(const struct stoker_loader *loader, uint32_t codec, uint32_t path);
void st_jpeg_threads_stats(const struct stoker_loader *loader, struct stoker_stats *out);

#endif
