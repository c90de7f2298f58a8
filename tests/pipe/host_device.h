/* host_device.h - a device made of plain memory, late on purpose, and suspicious
 *
 * A thread of its own carries out what is submitted, after a while. It copies the host half and then spoils it,
 * runs the jobs by plain loops, and counts as `wrong` whatever a real device could not survive: a host half that
 * changes before it was copied, a slot submitted twice at once, an offset that leads outside. Outputs are spoilt
 * when they are released.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_PIPE_HOST_DEVICE_H
#define ST_TESTS_PIPE_HOST_DEVICE_H

#include "codec/planes_rgb.h"
#include "op/colour/colour.h"
#include "op/tensor/erase.h"
#include "pipe/device.h"
#include "pipe/host_warp.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST_SPOILT = 0xa5, HOST_ORDINAL = 3 };

/* What a test wants of it, and what it saw. */
static struct {
    bool open_fails, no_raw, no_pin;
    int slot_fails, submit_fails; /* which call fails, counted from 1; 0: none */
    unsigned delay_us;
    _Atomic uint32_t wrong, submitted, slots, open, joined, marked, slot_calls, warps, fronts;
} host;

struct host_device {
    struct st_device base;
    struct st_device_want want;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct st_device_slot *first; /* submitted, in order */
    bool closing;
    uint8_t *raw; /* its copy of a host half */
};

struct st_device_slot {
    struct st_device_slot *next;
    uint8_t *host, *images;
    int64_t *labels;
    uint64_t used, sum;
    uint32_t count;
    bool queued, copied, done;
};

static uint64_t host_row_bytes(const struct st_device_want *w)
{
    return (uint64_t)w->width * (uint64_t)w->height * (uint64_t)w->channels * w->finish->element;
}

static uint64_t host_sum(const uint8_t *p, uint64_t size)
{
    uint64_t sum = 1469598103934665603ull, word;
    for (; size >= 8; size -= 8, p += 8) {
        memcpy(&word, p, 8);
        sum = (sum ^ word) * 1099511628211ull;
    }
    return sum;
}

/* ---- one row, by plain loops --------------------------------------------------------------------- */

struct host_run {
    const struct host_device *device;
    const struct st_job *job;
    uint64_t used;
};

static const void *host_at(const struct host_run *run, uint64_t at, uint64_t bytes)
{
    static const uint8_t nothing[1 << 20];
    const bool inside = at >= st_host_heap(run->device->want.rows) && at <= run->used && bytes <= run->used - at;
    host.wrong += !inside || at % 4;
    return inside ? run->device->raw + at : nothing;
}

static uint8_t host_weighed(const uint8_t *p, ptrdiff_t step, const int32_t *weight, int32_t taps)
{
    int64_t sum = 1 << (ST_WEIGHT_BITS - 1);
    for (int32_t k = 0; k < taps; k++)
        sum += (int64_t)p[k * step] * weight[k];
    sum >>= ST_WEIGHT_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* One pass along x or y; the image is replaced. */
static void host_pass(const struct host_run *run, const struct st_job_side *side, bool across, struct st_view *v)
{
    const int32_t count = across ? run->job->width : run->job->height, limit = across ? v->width : v->height;
    if (side->width == 0) {
        host.wrong += limit != count;
        return;
    }
    const uint64_t each = side->width < 0 ? 1 : 1 + (uint64_t)side->width;
    const int32_t *first = host_at(run, side->at, (uint64_t)count * each * 4), *weight = first + count;
    struct st_view out = {.width = across ? count : v->width, .height = across ? v->height : count,
                          .channels = v->channels};
    out.stride = (ptrdiff_t)out.width * out.channels;
    out.data = malloc((size_t)out.stride * (size_t)out.height);
    const ptrdiff_t step = across ? v->channels : v->stride;
    for (int32_t y = 0; y < out.height; y++)
        for (int32_t x = 0; x < out.width; x++)
            for (int32_t c = 0; c < out.channels; c++) {
                const int32_t o = across ? x : y;
                host.wrong += first[o] < 0 || first[o] + (side->width < 0 ? 1 : side->width) > limit;
                const uint8_t *p = (across ? st_row(v, y) : v->data + (ptrdiff_t)x * v->channels) + c + first[o] * step;
                st_row(&out, y)[x * out.channels + c] =
                    side->width < 0 ? *p : host_weighed(p, step, weight + (size_t)o * (size_t)side->width, side->width);
            }
    free(v->data);
    *v = out;
}

static int32_t host_reflected(int32_t i, int32_t count) { return i < 0 ? -i : i >= count ? 2 * (count - 1) - i : i; }

static void host_blur(const float *across, int32_t half_x, const float *down, int32_t half_y, struct st_view *v)
{
    const size_t row = (size_t)v->width * (size_t)v->channels;
    float *between = malloc(row * (size_t)v->height * sizeof *between);
    for (int32_t y = 0; y < v->height; y++)
        for (size_t i = 0; i < row; i++) {
            float sum = down[0] * st_row(v, y)[i];
            for (int32_t k = 1; k <= half_y; k++)
                sum += down[k] * (float)(st_row(v, host_reflected(y - k, v->height))[i] +
                                         st_row(v, host_reflected(y + k, v->height))[i]);
            between[(size_t)y * row + i] = sum;
        }
    for (int32_t y = 0; y < v->height; y++)
        for (int32_t x = 0; x < v->width; x++)
            for (int32_t c = 0; c < v->channels; c++) {
                const float *from = between + (size_t)y * row + c;
                float sum = across[0] * from[x * v->channels];
                for (int32_t k = 1; k <= half_x; k++)
                    sum += across[k] * (from[host_reflected(x - k, v->width) * v->channels] +
                                        from[host_reflected(x + k, v->width) * v->channels]);
                st_row(v, y)[x * v->channels + c] = (uint8_t)(int32_t)(sum + 0.5f);
            }
    free(between);
}

static void host_pending(const struct host_run *run, struct st_view *v)
{
    const struct st_colour_rows *rows = st_colour_rows_for(ST_CPU_C);
    const struct st_job *job = run->job;
    const struct st_job_pending *op =
        job->pending_count ? host_at(run, job->pending, job->pending_count * sizeof *op) : NULL;
    for (uint32_t k = 0; run->device->want.plain && k < job->pending_count; k++)
        host.wrong += !st_pending_by_pixel(&(struct st_pending){.kind = op[k].kind}, 1);
    host_turn(v, job->mirror, job->flip);
    for (uint32_t k = 0; k < job->pending_count; k++, op++) {
        switch (op->kind) {
        case ST_PENDING_SATURATION:
            for (int32_t y = 0; v->channels == 3 && y < v->height; y++)
                rows->saturate(st_row(v, y), st_row(v, y), (size_t)v->width, op->factor);
            break;
        case ST_PENDING_HUE:
            for (int32_t y = 0; v->channels == 3 && y < v->height; y++)
                rows->hue(st_row(v, y), st_row(v, y), (size_t)v->width, (uint8_t)op->factor);
            break;
        case ST_PENDING_BLUR: {
            const uint64_t weights = (uint64_t)(op->across / 2 + op->down / 2 + 2) * 4;
            const float *across = host_at(run, op->more, weights);
            host_blur(across, op->across / 2, across + op->across / 2 + 1, op->down / 2, v);
            break;
        }
        case ST_PENDING_WARP: {
            const struct st_job_warp *warp = host_at(run, op->more, sizeof *warp);
            const uint64_t places = (uint64_t)(v->width + v->height) * sizeof(int32_t);
            host_warp(warp, warp->places ? host_at(run, warp->places, places) : NULL, v);
            host.warps++;
            break;
        }
        default: { /* those that a worker runs in the same way */
            struct st_arena arena = {0};
            const struct st_pending same = {.kind = op->kind, .factor = op->factor, .level = op->level,
                                            .table = op->kind == ST_PENDING_TABLE ? host_at(run, op->more, 768) : NULL};
            const struct st_view in = *v;
            host.wrong += st_pending_run(&same, 1, rows, NULL, &arena, v, &(bool){true}) != 0;
            for (int32_t y = 0; v->data != in.data && y < in.height; y++)
                memcpy(st_row(&in, y), st_row(v, y), (size_t)in.width * (size_t)in.channels);
            *v = in;
            st_arena_free(&arena);
        }
        }
    }
}

static void host_border(const struct st_job *job, struct st_view *v)
{
    for (int32_t y = 0; job->bordered && y < v->height; y++)
        for (int32_t x = 0; x < v->width; x++)
            for (int32_t c = 0; c < v->channels; c++)
                if (x < job->inner_x || x >= job->inner_x + job->inner_width || y < job->inner_y ||
                    y >= job->inner_y + job->inner_height)
                    st_row(v, y)[x * v->channels + c] = (uint8_t)(job->fill >> (8 * c));
}

static void host_erase(const struct host_run *run, const struct st_place *place)
{
    const struct st_finish *finish = run->device->want.finish;
    const struct st_job *job = run->job;
    const struct st_job_erase *e =
        job->erase_count ? host_at(run, job->erases, job->erase_count * sizeof *e) : NULL;
    for (uint32_t k = 0; k < job->erase_count; k++, e++) {
        struct st_erase one = {.box = {(uint32_t)e->x, (uint32_t)e->y, (uint32_t)e->width, (uint32_t)e->height}};
        one.bytes = (uint64_t)e->width * (uint64_t)e->height * (uint64_t)finish->channels * finish->element;
        memcpy(one.bits, e->bits, sizeof one.bits);
        one.values = e->values ? host_at(run, e->values, one.bytes) : NULL;
        st_erase_write(&one, finish, place);
    }
}

static void host_finish(const struct host_run *run, const struct st_view *v, const struct st_place *place)
{
    const struct st_finish *f = run->device->want.finish;
    const size_t plane = (size_t)place->width * (size_t)place->height, channels = (size_t)f->channels;
    const size_t in = (size_t)v->channels; /* the first ones are taken */
    for (int32_t y = 0; y < v->height; y++)
        for (int32_t x = 0; x < v->width; x++)
            for (size_t c = 0; c < channels; c++) {
                const size_t pixel = (size_t)y * (size_t)place->width + (size_t)x;
                const size_t at =
                    f->layout == STOKER_LAYOUT_NCHW ? c * plane + pixel : pixel * channels + c;
                st_put_bits((uint8_t *)place->data + at * f->element, f->element,
                            f->lut[c][st_row(v, y)[(size_t)x * in + c]]);
            }
}

static struct st_view host_image(const struct host_run *run);

/* What the job's front makes: the part that the job starts from. */
static void host_made(const struct host_run *run, struct st_view *v)
{
    const struct st_job *job = run->job, *front = host_at(run, job->front, sizeof *front);
    const struct host_run before = {run->device, front, run->used};
    const uint64_t stride = (uint64_t)st_job_pitch(front->width) * (uint64_t)job->channels;
    const uint64_t at = job->pixels - front->made;
    const int32_t y = (int32_t)(at / stride), x = (int32_t)(at % stride) / job->channels;
    struct st_view made = host_image(&before);
    host.fronts++;
    host.wrong += job->stride != stride || x + v->width > front->width || y + v->height > front->height ||
                  made.width != front->width || made.height != front->height || made.channels < job->channels ||
                  front->from == ST_JOB_MADE || front->erase_count || front->made % ST_CACHE_LINE ||
                  front->between % ST_CACHE_LINE ||
                  front->made + st_job_made_bytes(front->width, front->height, job->channels) > front->between ||
                  front->between > run->device->want.made_bytes;
    for (int32_t k = 0; k < v->height; k++)
        for (int32_t i = 0; i < v->width; i++)
            memcpy(st_row(v, k) + i * job->channels, st_row(&made, y + k) + (x + i) * made.channels,
                   (size_t)job->channels);
    free(made.data);
}

/* Everything but the erased boxes and the output's type. */
static struct st_view host_image(const struct host_run *run)
{
    const struct st_job *job = run->job;
    const size_t row = (size_t)job->in_width * (size_t)job->channels;
    struct st_view v = {malloc(row * (size_t)job->in_height), (ptrdiff_t)row, job->in_width, job->in_height,
                        job->channels};
    if (job->from == ST_JOB_PLANES) {
        struct st_job here = *job; /* with addresses */
        for (int c = 0; c < 2 && !job->planes.stride; c++)
            here.planes.chroma[c] =
                (uint64_t)(uintptr_t)host_at(run, job->planes.chroma[c], (uint64_t)job->planes.width);
        planes_rgb(&here, &v);
    } else if (job->from == ST_JOB_MADE) {
        host_made(run, &v);
    } else {
        const uint8_t *pixels =
            host_at(run, job->pixels, (uint64_t)job->stride * (uint64_t)job->in_height);
        host.wrong += job->stride % 4 || job->stride < row || job->from != ST_JOB_HEAP ||
                      job->pixels % ST_CACHE_LINE;
        for (int32_t y = 0; y < v.height; y++)
            memcpy(st_row(&v, y), pixels + (size_t)y * job->stride, row);
    }
    if (job->vertical_first)
        host_pass(run, &job->y, false, &v);
    host_pass(run, &job->x, true, &v);
    if (!job->vertical_first)
        host_pass(run, &job->y, false, &v);
    host_border(job, &v);
    host_pending(run, &v);
    return v;
}

static void host_job(const struct host_device *device, const struct st_job *job, uint64_t used, uint8_t *to)
{
    const struct host_run run = {device, job, used};
    const struct st_device_want *w = &device->want;
    const struct st_place place = {to, w->width, w->height};
    host.wrong += job->width != w->width || job->height != w->height || (job->channels != w->channels && job->channels != 3);
    memset(to, 0, host_row_bytes(w));
    if (job->from == ST_JOB_BLANK)
        return;
    struct st_view v = host_image(&run);
    host_finish(&run, &v, &place);
    host_erase(&run, &place);
    free(v.data);
}

/* ---- the thread ---------------------------------------------------------------------------------- */

static void host_carry_out(struct host_device *device, struct st_device_slot *slot)
{
    const struct st_device_want *w = &device->want;
    const uint64_t row = host_row_bytes(w);
    usleep(host.delay_us);
    host.wrong += host_sum(slot->host, slot->used) != slot->sum; /* changed behind our back */
    memcpy(device->raw, slot->host, slot->used);
    memset(slot->host, HOST_SPOILT, slot->used); /* the rest still is */
    pthread_mutex_lock(&device->lock);
    slot->copied = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    usleep(host.delay_us);
    if (w->raw)
        for (uint32_t k = 0; k < slot->count; k++)
            host_job(device, (const struct st_job *)(const void *)device->raw + k, slot->used, slot->images + k * row);
    else
        memcpy(slot->images, device->raw, slot->count * row);
    const uint64_t labels = w->raw ? st_host_raw_labels(w->rows) : st_host_finished_labels(w->rows, row);
    memcpy(slot->labels, device->raw + labels, slot->count * sizeof *slot->labels);
}

static void *host_main(void *argument)
{
    struct host_device *device = argument;
    pthread_mutex_lock(&device->lock);
    while (device->first || !device->closing) {
        struct st_device_slot *slot = device->first;
        if (!slot) {
            pthread_cond_wait(&device->changed, &device->lock);
            continue;
        }
        pthread_mutex_unlock(&device->lock);
        host_carry_out(device, slot);
        pthread_mutex_lock(&device->lock);
        device->first = slot->next;
        slot->queued = false;
        slot->done = true;
        pthread_cond_broadcast(&device->changed);
    }
    pthread_mutex_unlock(&device->lock);
    return NULL;
}

/* ---- the calls ----------------------------------------------------------------------------------- */

static struct host_device *host_of(struct st_device *device) { return (struct host_device *)(void *)device; }

extern const struct st_device_kind host_kind;

static int host_open(struct st_device **out, const struct st_device_want *want, struct stoker_error *err)
{
    if (host.open_fails)
        return st_fail(err, STOKER_EIO, "the host device is out of order");
    if (want->raw && host.no_raw)
        return st_fail(err, STOKER_EUNSUPPORTED, "the host device does not do raw rows");
    struct host_device *device = calloc(1, sizeof *device);
    device->base = (struct st_device){&host_kind, want->ordinal < 0 ? 0 : want->ordinal};
    device->want = *want;
    device->raw = malloc(want->host_bytes);
    pthread_mutex_init(&device->lock, NULL);
    pthread_cond_init(&device->changed, NULL);
    pthread_create(&device->thread, NULL, host_main, device);
    host.open++;
    *out = &device->base;
    return 0;
}

static void host_close(struct st_device *base)
{
    struct host_device *device = host_of(base);
    pthread_mutex_lock(&device->lock);
    device->closing = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    pthread_join(device->thread, NULL);
    pthread_mutex_destroy(&device->lock);
    pthread_cond_destroy(&device->changed);
    host.open--;
    free(device->raw);
    free(device);
}

static int host_slot_new(struct st_device *base, struct st_device_slot **out, void **memory, bool *pinned,
                         struct stoker_error *err)
{
    const struct st_device_want *w = &host_of(base)->want;
    if ((int)++host.slot_calls == host.slot_fails)
        return st_fail(err, STOKER_ENOMEM, "the host device is full");
    struct st_device_slot *slot = calloc(1, sizeof *slot);
    slot->host = aligned_alloc(64, st_align(w->host_bytes, 64));
    memset(slot->host, HOST_SPOILT, w->host_bytes);
    slot->images = malloc(host_row_bytes(w) * w->rows);
    slot->labels = malloc(w->rows * sizeof *slot->labels);
    slot->copied = true;
    *pinned = *pinned && !host.no_pin;
    *memory = slot->host;
    *out = slot;
    host.slots++;
    return 0;
}

static void host_wait(struct host_device *device, const struct st_device_slot *slot)
{
    pthread_mutex_lock(&device->lock);
    while (slot->queued)
        pthread_cond_wait(&device->changed, &device->lock);
    pthread_mutex_unlock(&device->lock);
}

static void host_slot_free(struct st_device *base, struct st_device_slot *slot)
{
    host_wait(host_of(base), slot);
    free(slot->host);
    free(slot->images);
    free(slot->labels);
    free(slot);
    host.slots--;
}

static int host_submit(struct st_device *base, struct st_device_slot *slot, uint32_t count, uint64_t used,
                       struct stoker_error *err)
{
    struct host_device *device = host_of(base);
    const uint32_t number = ++host.submitted;
    if ((int)number == host.submit_fails)
        return st_fail(err, STOKER_EIO, "the host device broke down");
    host.wrong += used > device->want.host_bytes || count > device->want.rows;
    const uint64_t sum = host_sum(slot->host, used);
    pthread_mutex_lock(&device->lock);
    while (slot->queued) /* kernels of the batch before, whose host half was copied */
        pthread_cond_wait(&device->changed, &device->lock);
    host.wrong += !slot->copied;
    slot->count = count;
    slot->used = used;
    slot->sum = sum;
    slot->queued = true;
    slot->copied = slot->done = false;
    slot->next = NULL;
    struct st_device_slot **at = &device->first;
    while (*at)
        at = &(*at)->next;
    *at = slot;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    return 0;
}

static void host_where(const struct st_device_slot *slot, void **images, void **labels)
{
    *images = slot->images;
    *labels = slot->labels;
}

static bool host_idle(struct st_device *base, struct st_device_slot *slot, bool wait)
{
    struct host_device *device = host_of(base);
    pthread_mutex_lock(&device->lock);
    while (wait && !slot->copied)
        pthread_cond_wait(&device->changed, &device->lock);
    const bool idle = slot->copied;
    pthread_mutex_unlock(&device->lock);
    return idle;
}

static int host_join(struct st_device *base, struct st_device_slot *slot, uintptr_t stream, struct stoker_error *err)
{
    (void)base, (void)slot, (void)stream, (void)err;
    host.joined++;
    return 0;
}

static void host_mark(struct st_device *base, struct st_device_slot *slot, uintptr_t stream)
{
    (void)base, (void)slot, (void)stream;
    host.marked++;
}

static int host_sync(struct st_device *base, struct st_device_slot *slot, struct stoker_error *err)
{
    (void)err;
    host_wait(host_of(base), slot);
    return 0;
}

static void host_release(struct st_device *base, struct st_device_slot *slot)
{
    const struct st_device_want *w = &host_of(base)->want;
    host_wait(host_of(base), slot);
    host.wrong += !slot->done; /* never submitted, or released twice */
    slot->done = false;
    memset(slot->images, HOST_SPOILT, host_row_bytes(w) * w->rows);
    memset(slot->labels, HOST_SPOILT, w->rows * sizeof *slot->labels);
}

const struct st_device_kind host_kind = {
    .name = "host",
    .type = 1,
    .open = host_open,
    .close = host_close,
    .slot_new = host_slot_new,
    .slot_free = host_slot_free,
    .submit = host_submit,
    .where = host_where,
    .idle = host_idle,
    .join = host_join,
    .mark = host_mark,
    .sync = host_sync,
    .release = host_release,
};

static const struct st_devices host_devices = {.kind = &host_kind, .ordinal = HOST_ORDINAL};

#endif
