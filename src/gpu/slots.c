/* slots.c - the two halves of a slot, and when they may be accessed
 *
 * The host half is written by workers after `copied`. The device half is written by the device's stream
 * after the events of all readers. The CPU waits for neither unless told to.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/slots.h"

#include <stdlib.h>

enum { READERS_AT_FIRST = 2 };

/* The CPU sleeps while waiting for these two events; it never waits for readers' events. */
enum { SLEEPING_EVENT = ST_CU_EVENT_BLOCKING_SYNC | ST_CU_EVENT_DISABLE_TIMING };

static bool make_reader_room(const struct st_cuda *cuda, struct st_device_slot *slot, uint32_t room)
{
    struct st_gpu_reader *reader = st_grow(slot->reader, room, sizeof *reader);
    if (!reader)
        return false;
    slot->reader = reader;
    while (slot->reader_room < room) {
        if (cuda->EventCreate(&reader[slot->reader_room].event, ST_CU_EVENT_DISABLE_TIMING))
            return false;
        slot->reader_room++;
    }
    return true;
}

/* Pinned, or ordinary pages, which the driver copies in steps, more slowly and with the CPU's help. */
static int make_host_half(struct st_gpu_device *device, struct st_device_slot *slot, bool may_pin,
                          struct stoker_error *err)
{
    const uint64_t bytes = device->want.host_bytes;
    slot->pinned = may_pin && !device->cuda->MemHostAlloc(&slot->host, bytes, ST_CU_HOST_PORTABLE);
    if (!slot->pinned)
        slot->host = st_alloc_aligned(bytes);
    if (!slot->host)
        return st_fail(
            err, STOKER_ENOMEM,
            "out of memory: no host memory for a batch of %.1f MiB; use smaller or fewer "
            "batches",
            (double)bytes / (1 << 20));
    return STOKER_OK;
}

static int make_device_half(struct st_gpu_device *device, struct st_device_slot *slot,
                            struct stoker_error *err)
{
    const struct st_cuda *cuda = device->cuda;
    const uint64_t labels_at = st_align(device->images_bytes, ST_CACHE_LINE);
    const uint64_t bytes = labels_at + device->want.rows * sizeof(int64_t);
    int result = cuda->MemAlloc(&slot->images, bytes);
    if (result) {
        slot->images = 0;
        return st_cuda_fail_memory(cuda, device->base.ordinal, result, bytes, "a batch", err);
    }
    slot->labels = slot->images + labels_at;
    result = cuda->EventCreate(&slot->copied, SLEEPING_EVENT);
    if (!result)
        result = cuda->EventCreate(&slot->done, SLEEPING_EVENT);
    if (result)
        return st_cuda_fail(cuda, device->base.ordinal, result, err, "creating an event");
    if (!make_reader_room(cuda, slot, READERS_AT_FIRST))
        return st_fail(err, STOKER_ENOMEM, "out of memory while allocating a batch's slot");
    return STOKER_OK;
}

/* Frees everything; the context is current, and the device no longer uses the slot. */
static void unmake(struct st_gpu_device *device, struct st_device_slot *slot)
{
    const struct st_cuda *cuda = device->cuda;
    for (uint32_t k = 0; k < slot->reader_room; k++)
        cuda->EventDestroy(slot->reader[k].event);
    free(slot->reader);
    if (slot->copied)
        cuda->EventDestroy(slot->copied);
    if (slot->done)
        cuda->EventDestroy(slot->done);
    if (slot->images)
        cuda->MemFree(slot->images);
    if (slot->pinned)
        cuda->MemFreeHost(slot->host);
    else
        free(slot->host);
    free(slot);
}

int st_gpu_slot_new(struct st_device *base, struct st_device_slot **out, void **host, bool *pinned,
                    struct stoker_error *err)
{
    struct st_gpu_device *device = st_gpu_device(base);
    struct st_cuda_inside inside;
    struct st_device_slot *slot = st_calloc(1, sizeof *slot);
    if (!slot)
        return st_fail(err, STOKER_ENOMEM, "out of memory while allocating a batch's slot");
    const int result = st_cuda_enter(&inside, device->cuda, device->context);
    if (result) {
        free(slot);
        return st_cuda_fail(device->cuda, base->ordinal, result, err, "allocating a batch");
    }
    int status = make_host_half(device, slot, *pinned, err);
    if (!status)
        status = make_device_half(device, slot, err);
    if (status) {
        unmake(device, slot);
    } else {
        *out = slot;
        *host = slot->host;
        *pinned = slot->pinned;
    }
    st_cuda_leave(&inside);
    return status;
}

static void mark_readers(const struct st_cuda *cuda, struct st_device_slot *slot)
{
    const uint32_t end = slot->marked + slot->joined;
    for (uint32_t k = slot->marked; k < end; k++) {
        const struct st_gpu_reader reader = slot->reader[k];
        bool recorded;
        /* A stream of another context cannot record our event: wait for it here. Nor can a stream that
         * has been captured since, and it cannot be waited for; whoever captures must have waited for
         * earlier work in it, as torch does. */
        if (st_cuda_record(cuda, reader.event, reader.stream, &recorded) &&
            cuda->StreamSynchronize(reader.stream))
            cuda->CtxSynchronize();
        if (recorded) { /* swapped to the front, to keep the marked ones together */
            slot->reader[k] = slot->reader[slot->marked];
            slot->reader[slot->marked++] = reader;
        }
    }
    slot->joined = 0;
}

int st_gpu_slot_after_readers(struct st_gpu_device *device, struct st_device_slot *slot)
{
    mark_readers(device->cuda, slot);
    for (uint32_t k = 0; k < slot->marked; k++) {
        const int result = device->cuda->StreamWaitEvent(device->stream, slot->reader[k].event, 0);
        if (result)
            return result;
    }
    slot->marked = 0;
    return ST_CU_SUCCESS;
}

void st_gpu_slot_free(struct st_device *base, struct st_device_slot *slot)
{
    struct st_gpu_device *device = st_gpu_device(base);
    const struct st_cuda *cuda = device->cuda;
    struct st_cuda_inside inside;
    if (!slot)
        return;
    const bool entered = !st_cuda_enter(&inside, cuda, device->context);
    /* The stream waits for active readers, and we wait for the stream, asleep. If anything fails here,
     * the context is lost, and with it all work that could touch the slot. */
    if (entered && !st_gpu_slot_after_readers(device, slot) &&
        !cuda->EventRecord(slot->done, device->stream))
        cuda->EventSynchronize(slot->done);
    unmake(device, slot);
    if (entered)
        st_cuda_leave(&inside);
}

void st_gpu_slot_where(const struct st_device_slot *slot, void **images, void **labels)
{
    *images = (void *)(uintptr_t)slot->images;
    *labels = (void *)(uintptr_t)slot->labels;
}

bool st_gpu_slot_idle(struct st_device *base, struct st_device_slot *slot, bool wait)
{
    struct st_gpu_device *device = st_gpu_device(base);
    struct st_cuda_inside inside;
    if (st_cuda_enter(&inside, device->cuda, device->context))
        return true; /* the next submission will fail as well, and can report it */
    const int result =
        wait ? device->cuda->EventSynchronize(slot->copied) : device->cuda->EventQuery(slot->copied);
    st_cuda_leave(&inside);
    return result != ST_CU_NOT_READY;
}

/* Each thread has its own stream of one name, and another thread may release the batch. The legacy
 * stream, which is the default one, waits for all of them. */
static struct CUstream_st *lasting(uintptr_t handle)
{
    struct CUstream_st *stream = (struct CUstream_st *)handle;
    return !stream || stream == ST_CU_STREAM_PER_THREAD ? ST_CU_STREAM_LEGACY : stream;
}

/* The reader among `count` from `first` on, or -1. */
static int64_t find_reader(const struct st_device_slot *slot, uint32_t first, uint32_t count,
                           const struct CUstream_st *stream)
{
    for (uint32_t k = first; k < first + count; k++)
        if (slot->reader[k].stream == stream)
            return k;
    return -1;
}

static bool remember(const struct st_cuda *cuda, struct st_device_slot *slot, struct CUstream_st *stream)
{
    const uint32_t end = slot->marked + slot->joined;
    if (find_reader(slot, slot->marked, slot->joined, stream) >= 0)
        return true;
    if (end == slot->reader_room && !make_reader_room(cuda, slot, 2 * slot->reader_room))
        return false;
    slot->reader[end].stream = stream;
    slot->joined++;
    return true;
}

/* Marks the stream now: it may not live until the batch is released. False: it has to be waited for. */
static bool mark_now(const struct st_cuda *cuda, struct st_device_slot *slot, struct CUstream_st *stream)
{
    const uint32_t end = slot->marked + slot->joined;
    int64_t place = find_reader(slot, 0, slot->marked, stream);
    bool recorded;
    if (place < 0) {
        if (end == slot->reader_room && !make_reader_room(cuda, slot, 2 * slot->reader_room))
            return false;
        place = end;
    }
    struct st_gpu_reader *reader = &slot->reader[place];
    if (st_cuda_record(cuda, reader->event, stream, &recorded))
        return false;
    if (recorded && place == end) { /* to the end of the marked ones, in the place of a joined one */
        const struct st_gpu_reader own = {stream, reader->event};
        *reader = slot->reader[slot->marked];
        slot->reader[slot->marked++] = own;
    }
    return true;
}

void st_gpu_slot_mark(struct st_device *base, struct st_device_slot *slot, uintptr_t handle)
{
    struct st_gpu_device *device = st_gpu_device(base);
    const struct st_cuda *cuda = device->cuda;
    struct CUstream_st *stream = lasting(handle);
    struct st_cuda_inside inside;
    /* What has joined is marked when the batch is released. */
    if (find_reader(slot, slot->marked, slot->joined, stream) >= 0 ||
        st_cuda_enter(&inside, cuda, device->context))
        return;
    if (!mark_now(cuda, slot, stream) && cuda->StreamSynchronize(stream))
        cuda->CtxSynchronize();
    st_cuda_leave(&inside);
}

/* Work in a captured stream runs later, as a graph; so it is enough, and all that is possible, that the
 * batch is complete now. */
static int come_after_batch(const struct st_cuda *cuda, struct st_device_slot *slot,
                            struct CUstream_st *stream)
{
    bool capturing;
    if (cuda->EventQuery(slot->done) == ST_CU_SUCCESS)
        return ST_CU_SUCCESS; /* usual if batches are made ahead: nothing has to wait */
    const int result = st_cuda_capturing(cuda, stream, &capturing);
    if (result)
        return result;
    return capturing ? cuda->EventSynchronize(slot->done) : cuda->StreamWaitEvent(stream, slot->done, 0);
}

int st_gpu_slot_join(struct st_device *base, struct st_device_slot *slot, uintptr_t handle,
                     struct stoker_error *err)
{
    struct st_gpu_device *device = st_gpu_device(base);
    struct CUstream_st *stream = (struct CUstream_st *)handle;
    struct st_cuda_inside inside;
    int result = st_cuda_enter(&inside, device->cuda, device->context);
    if (result)
        return st_cuda_fail(device->cuda, base->ordinal, result, err, "delivering a batch");
    int status = STOKER_OK;
    if (!remember(device->cuda, slot, lasting(handle)))
        status = st_fail(err, STOKER_ENOMEM, "out of memory while another stream joined a batch");
    else if ((result = come_after_batch(device->cuda, slot, stream)))
        status = st_cuda_fail(device->cuda, base->ordinal, result, err,
                              "making the consumer's stream wait for the batch");
    st_cuda_leave(&inside);
    return status;
}

int st_gpu_slot_sync(struct st_device *base, struct st_device_slot *slot, struct stoker_error *err)
{
    struct st_gpu_device *device = st_gpu_device(base);
    struct st_cuda_inside inside;
    int result = st_cuda_enter(&inside, device->cuda, device->context);
    if (!result) {
        result = device->cuda->EventSynchronize(slot->done);
        st_cuda_leave(&inside);
    }
    return result ? st_cuda_fail(device->cuda, base->ordinal, result, err, "waiting for a batch")
                  : STOKER_OK;
}

void st_gpu_slot_release(struct st_device *base, struct st_device_slot *slot)
{
    struct st_gpu_device *device = st_gpu_device(base);
    struct st_cuda_inside inside;
    if (st_cuda_enter(&inside, device->cuda, device->context))
        return; /* the context is lost, as the next submission will report */
    mark_readers(device->cuda, slot);
    st_cuda_leave(&inside);
}
