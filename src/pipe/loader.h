/* loader.h - loaders, as the layer above uses them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_LOADER_H
#define ST_PIPE_LOADER_H

#include "pipe/device.h"

struct stoker_loader;
struct stoker_pipeline;

/* `devices` may be NULL. */
int st_loader_open(struct stoker_loader **out, struct stoker_dataset *data, struct stoker_pipeline *pipe,
                   const struct stoker_loader_options *opt, const struct st_devices *devices,
                   struct stoker_error *err);
int st_loader_start(struct stoker_loader *loader, const struct stoker_epoch *epoch, uint64_t base,
                    struct stoker_error *err);
int st_loader_next(struct stoker_loader *loader, const struct stoker_batch **out,
                   struct stoker_error *err);
void st_loader_interrupt(struct stoker_loader *loader);
void st_loader_on_failure(struct stoker_loader *loader, stoker_failure_callback *callback,
                          void *context);
void st_loader_close(struct stoker_loader *loader);
/* If `stream` is not NULL, the memory is reused only after the work now queued in that stream. */
void st_batch_release(const struct stoker_batch *batch, const uintptr_t *stream);
void st_batch_mark(const struct stoker_batch *batch, uintptr_t stream);
int st_batch_join(const struct stoker_batch *batch, uintptr_t stream, struct stoker_error *err);
int st_batch_sync(const struct stoker_batch *batch, struct stoker_error *err);

int st_loader_save(struct stoker_loader *loader, struct stoker_state *out, struct stoker_error *err);
int st_loader_restore(struct stoker_loader *loader, const struct stoker_state *state,
                      const struct stoker_epoch *epoch, struct stoker_error *err);

void st_loader_stats(struct stoker_loader *loader, struct stoker_stats *out);
/* The files that workers and JPEG threads have decoded on the CPU, by codec (its place in st_codecs)
 * and path. */
uint64_t st_loader_files(struct stoker_loader *loader, uint32_t codec, uint32_t path);
bool st_loader_bad(struct stoker_loader *loader, uint64_t k, struct stoker_bad_sample *out);

/* Ends the current epoch: on return no worker holds a ticket and no read is in flight. */
void st_loader_stop(struct stoker_loader *loader);
/* STOKER_EFORK if the calling process is not the one that opened the loader. */
int st_loader_check_owner(const struct stoker_loader *loader, struct stoker_error *err);

#endif
