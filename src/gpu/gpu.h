/* gpu.h - the interface of the GPU layer
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
extern const struct st_jpeg_hw_kind st_jpeg_hw_nvjpeg;

/* Describes the driver, its devices and the kernels of this build, one per line; false past the end.
 * Creates no context. Any thread. */
bool st_gpu_info(uint32_t index, struct stoker_feature *out);

/* ---- the utilisation of a GPU (nvml.c) ------------------------------------------------------------ */

/* The name of the driver's management library (NVML) on any system with a driver. */
#define ST_NVML_LIBRARY "libnvidia-ml.so.1"

/* Opens `library` and the GPU selected by `which`, as in stoker_gpu_watch_open. */
int st_nvml_open(struct stoker_gpu_watch **out, const char *library, const char *which,
                 struct stoker_error *err);
/* Current values; unknown ones are negative (numbers) or 0 (bytes). */
void st_nvml_sample(struct stoker_gpu_watch *watch, struct stoker_gpu_sample *out);
void st_nvml_close(struct stoker_gpu_watch *watch); /* NULL is fine */

#endif
