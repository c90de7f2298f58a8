/* consumer.h - a loader's batches and a consumer's streams, played by tests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_CONSUMER_H
#define ST_TESTS_CONSUMER_H

#include <pthread.h>
#include <string.h>

#include "gpu/gpu.h"

enum { ROWS = 4, WIDTH = 16, HEIGHT = 12, CHANNELS = 3, IMAGES = ROWS * WIDTH * HEIGHT * CHANNELS };
enum { LABELS_AT = (IMAGES + 63) / 64 * 64, HOST_BYTES = LABELS_AT + ROWS * 8 };

/* A gate in a stream: work behind it waits until it is opened. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
};
#define GATE                                                                                            \
    {                                                                                                   \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false                                      \
    }

static inline void pass_gate(void *argument)
{
    struct gate *gate = argument;
    pthread_mutex_lock(&gate->lock);
    while (!gate->open)
        pthread_cond_wait(&gate->opened, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static inline void set_gate(struct gate *gate, bool open)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = open;
    pthread_cond_broadcast(&gate->opened);
    pthread_mutex_unlock(&gate->lock);
}

/* Batch `number`: bytes and labels that belong to no other. */
static inline uint8_t byte_of(uint32_t number, uint32_t at)
{
    return (uint8_t)(number * 37u + at * 11u + (at >> 8));
}
static inline int64_t label_of(uint32_t number, uint32_t row) { return (int64_t)number * 1000 + row; }

static inline void fill_batch(void *host, uint32_t number)
{
    uint8_t *bytes = host;
    for (uint32_t k = 0; k < IMAGES; k++)
        bytes[k] = byte_of(number, k);
    for (uint32_t row = 0; row < ROWS; row++)
        ((int64_t *)(bytes + LABELS_AT))[row] = label_of(number, row);
}

static inline bool holds_batch(const void *images, const void *labels, uint32_t number)
{
    for (uint32_t k = 0; k < IMAGES; k++)
        if (((const uint8_t *)images)[k] != byte_of(number, k))
            return false;
    for (uint32_t row = 0; row < ROWS; row++)
        if (((const int64_t *)labels)[row] != label_of(number, row))
            return false;
    return true;
}

/* Work of the consumer's that reads a batch, behind a gate where one is given. */
struct look {
    struct gate *gate;
    void *images, *labels;
    uint32_t number;
    unsigned seen, right;
};

static inline void look_at(void *argument)
{
    struct look *look = argument;
    if (look->gate)
        pass_gate(look->gate);
    look->right += holds_batch(look->images, look->labels, look->number);
    look->seen++;
}

static inline const struct st_finish *bytes_as_they_are(void)
{
    static const struct st_finish finish = {
        .dtype = STOKER_DTYPE_U8, .layout = STOKER_LAYOUT_NHWC, .channels = CHANNELS, .element = 1};
    return &finish;
}

static inline struct st_device_want finished_rows(int ordinal)
{
    return (struct st_device_want){.ordinal = ordinal,
                                   .rows = ROWS,
                                   .width = WIDTH,
                                   .height = HEIGHT,
                                   .channels = CHANNELS,
                                   .finish = bytes_as_they_are(),
                                   .raw = false,
                                   .host_bytes = HOST_BYTES};
}

/* One slot of a device, and where its halves are. */
struct home {
    struct st_device *device;
    struct st_device_slot *slot;
    void *host, *images, *labels;
    bool pinned;
};

static inline int new_home(struct home *home, struct st_device *device, struct stoker_error *err)
{
    home->device = device;
    home->pinned = true;
    const int status = device->kind->slot_new(device, &home->slot, &home->host, &home->pinned, err);
    if (!status)
        device->kind->where(home->slot, &home->images, &home->labels);
    return status;
}

static inline int send_batch(const struct home *home, uint32_t number, struct stoker_error *err)
{
    home->device->kind->idle(home->device, home->slot, true);
    fill_batch(home->host, number);
    return home->device->kind->submit(home->device, home->slot, ROWS, HOST_BYTES, err);
}

#endif
