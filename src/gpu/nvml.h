/* nvml.h - the utilisation of a GPU, from the driver's management library (NVML), opened at run time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_NVML_H
#define ST_GPU_NVML_H

#include "base/err.h"

/* The library's name on any system with a driver. */
#define ST_NVML_LIBRARY "libnvidia-ml.so.1"

/* Opens `library` and the GPU selected by `which`, as in stoker_gpu_watch_open. */
int st_nvml_open(struct stoker_gpu_watch **out, const char *library, const char *which,
                 struct stoker_error *err);
/* Current values; unknown ones are negative (numbers) or 0 (bytes). */
void st_nvml_sample(struct stoker_gpu_watch *watch, struct stoker_gpu_sample *out);
void st_nvml_close(struct stoker_gpu_watch *watch); /* NULL is fine */

#endif
