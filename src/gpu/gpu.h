/* gpu.h - what the GPU floor offers to those above
 *
 * Nothing here touches the driver before a device, pinned memory or the list is asked for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_GPU_H
#define ST_GPU_GPU_H

#include "pipe/device.h"

extern const struct st_device_kind st_device_cuda;
extern const struct st_pinned_kind st_pinned_cuda;
extern const struct st_engine_kind st_engine_nvjpeg;

/* What there is, line by line: the driver, its devices, the kernels of this build; false past the end. Makes
 * no context. Any thread. */
bool st_gpu_info(uint32_t index, struct stoker_feature *out);

#endif
