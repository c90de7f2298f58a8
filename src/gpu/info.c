/* info.c - describes the driver, the devices and the kernels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gpu.h"
#include "gpu/kernels.h"
#include "gpu/nvjpeg.h"

#include <pthread.h>
#include <stdio.h>

enum { LINES_MAX = 3 + 16 }; /* the driver, the kernels, nvJPEG, and up to 16 devices */

struct line {
    char name[16];
    char detail[sizeof((struct stoker_error *)0)->message];
    bool present;
};

/* The texts must outlive the call, so they are made once, like the driver's table: written before
 * anybody reads them, and constant from then on. */
static struct {
    pthread_once_t once;
    uint32_t count;
    struct line line[LINES_MAX];
} known = {.once = PTHREAD_ONCE_INIT};

static void add_device(const struct st_cuda *cuda, int ordinal)
{
    struct line *line = &known.line[known.count];
    char name[128] = "";
    size_t bytes = 0;
    int device, major = 0, minor = 0;
    if (cuda->DeviceGet(&device, ordinal) || cuda->DeviceGetName(name, sizeof name, device) ||
        cuda->DeviceTotalMem(&bytes, device) ||
        cuda->DeviceGetAttribute(&major, ST_CU_ATTRIBUTE_CAPABILITY_MAJOR, device) ||
        cuda->DeviceGetAttribute(&minor, ST_CU_ATTRIBUTE_CAPABILITY_MINOR, device))
        return;
    name[sizeof name - 1] = '\0';
    snprintf(line->name, sizeof line->name, "cuda:%d", ordinal);
    snprintf(line->detail, sizeof line->detail, "%s, %.1f GiB, compute capability %d.%d", name,
             (double)bytes / (1 << 30), major, minor);
    line->present = true;
    known.count++;
}

static void add_nvjpeg(void)
{
    struct line *line = &known.line[known.count++];
    struct st_nvjpeg nvjpeg;
    struct stoker_error err;
    snprintf(line->name, sizeof line->name, "nvJPEG");
    line->present = !st_nvjpeg_load(&nvjpeg, NULL, &err);
    if (line->present)
        snprintf(line->detail, sizeof line->detail,
                 "%d.%d.%d, for GPUs with JPEG hardware", nvjpeg.version[0],
                 nvjpeg.version[1], nvjpeg.version[2]);
    else
        snprintf(line->detail, sizeof line->detail, "%s", err.message);
    st_nvjpeg_unload(&nvjpeg);
}

static void gather(void)
{
    const struct st_cuda *cuda;
    struct stoker_error err;
    int devices = 0;
    struct line *driver = &known.line[known.count++];
    snprintf(driver->name, sizeof driver->name, "driver");
    driver->present = !st_cuda_get(&cuda, &err);
    if (driver->present) {
        snprintf(driver->detail, sizeof driver->detail, "CUDA %d.%d", cuda->version / 1000,
                 cuda->version % 1000 / 10);
        cuda->DeviceGetCount(&devices);
    } else {
        snprintf(driver->detail, sizeof driver->detail, "%s", err.message);
    }
    for (int k = 0; k < devices && known.count < LINES_MAX - 2; k++)
        add_device(cuda, k);
    struct line *kernels = &known.line[known.count++];
    snprintf(kernels->name, sizeof kernels->name, "kernels");
    snprintf(kernels->detail, sizeof kernels->detail, "%s", st_gpu_kernels_about(&kernels->present));
    add_nvjpeg();
}

bool st_gpu_info(uint32_t index, struct stoker_feature *out)
{
    pthread_once(&known.once, gather);
    if (index >= known.count)
        return false;
    const struct line *line = &known.line[index];
    *out = (struct stoker_feature){.size = sizeof *out,
                                   .present = line->present,
                                   .kind = "gpu",
                                   .name = line->name,
                                   .detail = line->detail};
    return true;
}
