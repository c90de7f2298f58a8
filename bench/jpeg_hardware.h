/* jpeg_hardware.h - what the programs that measure a GPU's JPEG hardware share: the files, and the device
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BENCH_JPEG_HARDWARE_H
#define ST_BENCH_JPEG_HARDWARE_H

#include "base/clock.h"
#include "codec/jpeg/headers.h"
#include "gpu/gpu.h"
#include "gpu/slots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FILES_MAX = 4096 };

static struct st_bytes files[FILES_MAX]; /* that the hardware takes */
static uint32_t file_count;
static struct st_gpu_device device = {.base = {.ordinal = 0}};

static bool read_file(const char *path, struct st_bytes *out)
{
    FILE *file = fopen(path, "rb");
    bool good = file && !fseek(file, 0, SEEK_END);
    const long size = good ? ftell(file) : -1;
    uint8_t *data = size > 0 ? malloc((size_t)size) : NULL;
    good = data && !fseek(file, 0, SEEK_SET) && fread(data, 1, (size_t)size, file) == (size_t)size;
    if (file)
        fclose(file);
    *out = (struct st_bytes){data, good ? (size_t)size : 0};
    return good;
}

static void add_file(const char *path)
{
    struct st_jpeg_frame frame;
    if (file_count < FILES_MAX && read_file(path, &files[file_count]) &&
        st_jpeg_headers(files[file_count], &frame) == ST_JPEG_OURS && st_jpeg_hw_nvjpeg.takes(&frame))
        file_count++;
}

static bool open_device(struct stoker_error *err)
{
    if (st_cuda_get(&device.cuda, err))
        return false;
    int result = device.cuda->DeviceGet(&device.device, 0);
    if (!result)
        result = device.cuda->DevicePrimaryCtxRetain(&device.context, device.device);
    return !result || st_cuda_fail(device.cuda, 0, result, err, "opening the device") == STOKER_OK;
}

#endif
