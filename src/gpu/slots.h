/* slots.h - a CUDA device opened for one loader, and the two halves of its slots
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_SLOTS_H
#define ST_GPU_SLOTS_H

#include <pthread.h>

#include "gpu/kernels.h"

struct st_gpu_device {
    struct st_device base; /* must be first, so that it can be cast back */
    const struct st_cuda *cuda;
    struct st_device_want want;
    int device;
    struct CUctx_st *context; /* the primary context, shared with torch and others */
    struct CUstream_st *stream;
    uint64_t images_bytes;
    uint64_t host_labels; /* offset of the labels in a slot's host half */
    /* raw rows only: */
    struct st_gpu_kernels *kernels;
    uint64_t raw, scratch; /* one of each for all slots: the stream separates batches */
    pthread_mutex_t lock;        /* keeps a batch's work together in the stream */
    pthread_mutex_t jpeg_turn; /* held by the thread that hands files to the JPEG hardware */
};

/* A stream that reads the batch, and the event that marks the end of its reads. */
struct st_gpu_reader {
    struct CUstream_st *stream;
    struct CUevent_st *event;
};

struct st_device_slot {
    void *host;
    bool pinned;
    uint64_t images, labels; /* on the device; one allocation, which starts with the images */
    struct CUevent_st *copied, *done;
    /* Readers in order: the `marked` ones have released the batch, and their events say when they are
     * done; then the `joined` ones, which still have it. After both, there are spare events. */
    struct st_gpu_reader *reader;
    uint32_t marked, joined, reader_room;
};

static inline struct st_gpu_device *st_gpu_device(struct st_device *device)
{
    return (struct st_gpu_device *)device;
}

int st_gpu_slot_new(struct st_device *device, struct st_device_slot **out, void **host, bool *pinned,
                    struct stoker_error *err);
void st_gpu_slot_free(struct st_device *device, struct st_device_slot *slot);
void st_gpu_slot_where(const struct st_device_slot *slot, void **images, void **labels);
bool st_gpu_slot_idle(struct st_device *device, struct st_device_slot *slot, bool wait);
int st_gpu_slot_join(struct st_device *device, struct st_device_slot *slot, uintptr_t stream,
                     struct stoker_error *err);
void st_gpu_slot_mark(struct st_device *device, struct st_device_slot *slot, uintptr_t stream);
int st_gpu_slot_sync(struct st_device *device, struct st_device_slot *slot, struct stoker_error *err);
void st_gpu_slot_release(struct st_device *device, struct st_device_slot *slot);

/* Orders later work in the device's stream after all readers of the slot's batch. The context is
 * current. Returns a CUresult. */
int st_gpu_slot_after_readers(struct st_gpu_device *device, struct st_device_slot *slot);

#endif
