/* rescue.c - the program's second attempt at a sample that cannot be read or decoded here
 *
 * The program's function runs in the thread that calls next, and in no other: a language with a runtime
 * of its own must not be entered by threads that it does not know. A worker therefore leaves a request,
 * and waits until next serves it or the epoch is stopped. What the function returns is copied into the
 * worker's own buffer, whose size is limited like that of a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/alone.h"
#include "pipe/failure.h"
#include "pipe/gate.h"
#include "pipe/run.h"

#include <string.h>

/* A request, on the stack of the worker that waits for it. */
struct st_rescue_request {
    struct st_rescue_request *next;
    struct stoker_failed_sample failed;
    enum { WAITS, SERVED, ANSWERED } state;
    bool made;
    const void *image;
    size_t size;
};

static void call(const struct stoker_loader *loader, struct st_rescue_request *request)
{
    request->made = loader->rescue.callback(loader->rescue.context, &request->failed, &request->image,
                                            &request->size) &&
                    request->image && request->size;
}

/* The image is the program's, which may drop it as soon as this returns. */
static int copy(struct st_worker *worker, const struct st_rescue_request *request,
                struct stoker_error *err)
{
    struct st_buffer *own = &worker->bytes;
    if (!st_buffer_reserve(own, request->size)) {
        st_fail(err, STOKER_ENOMEM, "no memory for an image of %zu bytes", request->size);
        return st_gate_not_read(worker, request->failed.sample, STOKER_ENOMEM, err);
    }
    memcpy(own->data, request->image, request->size);
    own->size = request->size;
    return 0;
}

static void unlink_request(struct stoker_loader *loader, const struct st_rescue_request *request)
{
    struct st_rescue_request **at = &loader->rescue.first;
    while (*at && *at != request)
        at = &(*at)->next;
    if (*at)
        *at = request->next;
}

/* Waits until next has served the request. 0: it has an image, which is now the worker's. */
static int ask(struct st_worker *worker, struct st_rescue_request *request, struct stoker_error *err)
{
    struct stoker_loader *loader = worker->loader;
    struct st_rescue_request **at = &loader->rescue.first;
    pthread_mutex_lock(&loader->lock);
    while (*at)
        at = &(*at)->next;
    *at = request;
    pthread_cond_broadcast(&loader->ready);
    while (request->state == WAITS && !atomic_load(&loader->stopping))
        pthread_cond_wait(&loader->rescue.answer, &loader->lock);
    if (request->state == WAITS) {
        unlink_request(loader, request);
        pthread_mutex_unlock(&loader->lock);
        return st_fail(err, STOKER_ECANCELED, "the epoch was stopped");
    }
    while (request->state == SERVED) /* the thread in next looks at the request */
        pthread_cond_wait(&loader->rescue.answer, &loader->lock);
    pthread_mutex_unlock(&loader->lock);
    const int rc = request->made ? copy(worker, request, err) : err->code;
    pthread_mutex_lock(&loader->lock);
    loader->rescue.handing_over = false;
    pthread_cond_broadcast(&loader->rescue.answer);
    pthread_mutex_unlock(&loader->lock);
    return rc;
}

bool st_rescue_serve(struct stoker_loader *loader)
{
    const bool any = loader->rescue.first;
    while (loader->rescue.first) {
        struct st_rescue_request *request = loader->rescue.first;
        loader->rescue.first = request->next;
        request->state = SERVED;
        pthread_mutex_unlock(&loader->lock);
        call(loader, request);
        pthread_mutex_lock(&loader->lock);
        loader->rescue.handing_over = true;
        request->state = ANSWERED; /* it may be gone as soon as the lock is released */
        pthread_cond_broadcast(&loader->rescue.answer);
        while (loader->rescue.handing_over)
            pthread_cond_wait(&loader->rescue.answer, &loader->lock);
    }
    return any;
}

/* Whether the program may know better. Samples with several fields are not a single file. */
static bool is_worth_asking(const struct st_worker *worker, int code)
{
    const struct stoker_loader *loader = worker->loader;
    return loader->rescue.callback && !worker->too_large && !worker->over_memory &&
           !loader->columns.fields &&
           !loader->pipe->sounds &&
           (code == STOKER_ECORRUPT || code == STOKER_EUNSUPPORTED || code == STOKER_ELIMIT ||
            code == STOKER_EIO || code == STOKER_ENOTFOUND);
}

/* Makes the sample from the program's image. One that exceeded pixel_limit is allowed now. */
static int make(struct st_worker *worker, uint64_t sample, uint64_t key, struct st_slot *slot,
                uint32_t row, int was, struct stoker_error *err)
{
    struct st_decoder *decoder = &worker->work.decoder;
    const uint64_t limit = decoder->pixel_limit;
    const struct st_bytes image = {.data = worker->bytes.data, .size = worker->bytes.size};
    if (was == STOKER_ELIMIT)
        decoder->pixel_limit = 0;
    const int rc = st_run_sample(worker, image, sample, key, slot, row, err);
    decoder->pixel_limit = limit;
    if (worker->stopped)
        return st_fail(err, STOKER_ECANCELED, "the epoch was stopped");
    if (rc && !worker->again)
        st_bad_name(worker->loader, sample, err);
    return rc;
}

/* Asks the program why the sample failed as *why says, and makes it from what it has. If that ends with
 * worker->again, this is to be repeated. */
static int ask_and_make(struct st_worker *worker, uint64_t sample, uint64_t key, struct st_slot *slot,
                        uint32_t row, const struct stoker_error *why, struct stoker_error *err)
{
    struct stoker_loader *loader = worker->loader;
    struct stoker_error unread = {0};
    struct st_bytes bytes = {0};
    st_alone_yield(worker);
    worker->again = false;
    int rc = worker->wants_alone ? st_alone_take(worker, slot, row, err)
                                 : st_gate_read(worker, slot, row, err);
    if (rc)
        return rc;
    if (st_read_until(loader->data, sample, &loader->stopping, &worker->bytes, &bytes, &unread))
        bytes = (struct st_bytes){0}; /* the program finds out why */
    else if (!bytes.data)
        bytes.data = (const uint8_t *)""; /* an empty file was read */
    st_gate_was_read(worker, bytes.size);
    worker->bytes.refused = worker->memory.refused = 0;
    struct st_rescue_request request = {.failed = {.size = sizeof request.failed,
                                                   .sample = sample,
                                                   .bytes = bytes.data,
                                                   .byte_count = bytes.size,
                                                   .error = why}};
    *err = *why;
    if (loader->worker_count || worker != &loader->worker[0]) {
        rc = ask(worker, &request, err);
    } else { /* this is the thread in next */
        call(loader, &request);
        rc = request.made ? copy(worker, &request, err) : why->code;
    }
    if (!rc)
        return make(worker, sample, key, slot, row, why->code, err);
    st_gate_leave(worker);
    return rc;
}

int st_rescue_sample(struct st_worker *worker, uint64_t sample, uint64_t key, struct st_slot *slot,
                     uint32_t row, struct stoker_error *err)
{
    const struct stoker_error why = *err;
    int rc = why.code;
    if (!is_worth_asking(worker, rc))
        return rc;
    worker->wants_alone = false;
    do
        rc = ask_and_make(worker, sample, key, slot, row, &why, err);
    while (rc && worker->again);
    return rc;
}
