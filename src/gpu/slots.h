/* slots.h - a CUDA device opened for one loader, and the two halves of its slots
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_SLOTS_H
#define ST_GPU_SLOTS_H

#include <pthread.h>

#include "gpu/kernels.h"

struct st_gpu_device {
    struct st_device base; /* first, so that it leads back here */
    const struct st_cuda *cuda;
    struct st_device_want want;
    int device;
    struct CUctx_st *context; /* the primary one, shared with torch and everybody else */
    struct CUstream_st *stream;
    uint64_t images_bytes;
    uint64_t host_labels; /* where labels begin in a slot's host half */
    /* raw rows only: */
    struct st_gpu_kernels *kernels;
    uint64_t raw, scratch; /* one of each for all slots: the stream keeps batches apart */
    pthread_mutex_t lock;  /* a batch's work goes into the stream in one piece */
};

/* A stream that reads the batch, and the event at which it will have done so. */
struct st_gpu_reader {
    struct CUstream_st *stream;
    struct CUevent_st *event;
};

struct st_device_slot {
    void *host;
    bool pinned;
    uint64_t images, labels; /* on the device; one piece of memory, which begins with the images */
    struct CUevent_st *copied, *done;
    /* Readers in order: `marked` ones have let go, and their events say when they are through; behind
     * them `joined` ones still have the batch. Beyond both there are events for later. */
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
int st_gpu_slot_sync(struct st_device *device, struct st_device_slot *slot, struct stoker_error *err);
void st_gpu_slot_release(struct st_device *device, struct st_device_slot *slot);

/* What comes into the device's stream next comes after all who read the slot's batch. The context is
 * current. Returns a CUresult. */
int st_gpu_slot_after_readers(struct st_gpu_device *device, struct st_device_slot *slot);

#endif
