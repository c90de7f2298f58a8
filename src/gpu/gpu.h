/* gpu.h - the interface of the GPU floor
 *
 * The driver is not touched before a device, pinned memory or the list below is requested.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_GPU_H
#define ST_GPU_GPU_H

#include "pipe/device.h"

extern const struct st_device_kind st_device_cuda;
extern const struct st_pinned_kind st_pinned_cuda;
extern const struct st_jpeg_engine_kind st_jpeg_engine_nvjpeg;

/* Describes the driver, its devices and the kernels of this build, one per line; false past the end.
 * Creates no context. Any thread. */
bool st_gpu_info(uint32_t index, struct stoker_feature *out);

#endif
