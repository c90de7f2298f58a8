/* graphics.c - the GPU: driver, link, and the speed of copies from pinned and pageable memory
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/machine/machine.h"

#include "base/clock.h"
#include "base/mem.h"
#include "gpu/cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COPY_BYTES = 64 << 20, COPIES = 4 };

/* Bytes per second, without the first copy, which warms up. NaN: a copy failed. */
static double copy_speed(const struct st_cuda *cuda, uint64_t to, const void *from)
{
    uint64_t began = 0;
    for (int k = 0; k <= COPIES; k++) {
        if (k == 1)
            began = st_now_ns();
        if (cuda->MemcpyHtoDAsync(to, from, COPY_BYTES, NULL) || cuda->StreamSynchronize(NULL))
            return NAN;
    }
    const uint64_t took = st_now_ns() - began;
    return took ? COPIES * (double)COPY_BYTES / ((double)took / 1e9) : NAN;
}

static void measure(const struct st_cuda *cuda, double *pinned, double *pageable)
{
    struct CUctx_st *context = NULL, *popped;
    uint64_t to = 0;
    void *locked = NULL;
    int device;
    *pinned = *pageable = NAN;
    if (cuda->DeviceGet(&device, 0) || cuda->DevicePrimaryCtxRetain(&context, device))
        return;
    if (!cuda->CtxPushCurrent(context)) {
        void *plain = st_calloc(1, COPY_BYTES);
        if (plain)
            memset(plain, 1, COPY_BYTES); /* so that the pages exist */
        if (plain && !cuda->MemAlloc(&to, COPY_BYTES)) {
            *pageable = copy_speed(cuda, to, plain);
            if (!cuda->MemHostAlloc(&locked, COPY_BYTES, 0)) {
                memset(locked, 1, COPY_BYTES);
                *pinned = copy_speed(cuda, to, locked);
                cuda->MemFreeHost(locked);
            }
            cuda->MemFree(to);
        }
        free(plain);
        cuda->CtxPopCurrent(&popped);
    }
    cuda->DevicePrimaryCtxRelease(device);
}

static void check_copies(struct dr_checks *checks)
{
    const struct st_cuda *cuda;
    struct stoker_error err;
    double pinned, pageable;
    if (st_cuda_get(&cuda, &err)) {
        dr_check_add(checks, DR_NOT_HERE, "copies", "", "%s", err.message);
        return;
    }
    measure(cuda, &pinned, &pageable);
    if (isnan(pinned) || isnan(pageable))
        dr_check_add(checks, DR_BROKEN, "copies",
                     "check with nvidia-smi whether the GPU is full or lost", "copies to the GPU fail");
    else
        dr_check_add(checks, pinned < 5e9 ? DR_IMPROVE : DR_GOOD, "copies",
                     pinned < 5e9 ? "check the generation and width of the link, and the NUMA node"
                                  : "pin_memory=True and non_blocking=True use the faster one",
                     "%.1f GB/s from pinned memory, %.1f GB/s from pageable", pinned / 1e9,
                     pageable / 1e9);
}

void dr_check_gpu(struct dr_checks *checks)
{
    struct stoker_gpu_watch *watch = NULL;
    struct stoker_gpu_sample now = {.size = sizeof now};
    struct stoker_error err = {0};
    if (stoker_gpu_watch_open(&watch, NULL, &err)) {
        dr_check_add(checks, DR_NOT_HERE, "GPU", "", "%s", err.message);
    } else if (stoker_gpu_watch_sample(watch, &now, &err)) {
        dr_check_add(checks, DR_BROKEN, "GPU", "check nvidia-smi and the kernel log", "%s",
                     err.message);
    } else {
        dr_check_add(checks, DR_GOOD, "GPU", "", "%s, %.1f GiB, driver %s", now.name,
                     (double)now.memory_total / (1 << 30), now.driver);
        const bool narrow = now.link_width >= 0 && now.link_width < now.link_width_most;
        if (now.link_width < 0)
            dr_check_add(checks, DR_NOT_HERE, "PCIe", "", "the driver does not report the link");
        else
            dr_check_add(
                checks, narrow ? DR_IMPROVE : DR_GOOD, "PCIe",
                narrow ? "move the card to a slot with all lanes; check risers and the BIOS" : "",
                "generation %.0f x%.0f of at most generation %.0f x%.0f (an idle GPU may lower it)",
                now.link_generation, now.link_width, now.link_generation_most, now.link_width_most);
    }
    stoker_gpu_watch_close(watch);
    check_copies(checks);
}
