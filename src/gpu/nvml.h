/* nvml.h - how busy a GPU is, from the driver's management library (NVML), opened at run time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_NVML_H
#define ST_GPU_NVML_H

#include "base/err.h"

/* The library's name wherever a driver is installed. */
#define ST_NVML_LIBRARY "libnvidia-ml.so.1"

/* Opens `library` and the GPU that `which` names, as stoker_gpu_watch_open. */
int st_nvml_open(struct stoker_gpu_watch **out, const char *library, const char *which,
                 struct stoker_error *err);
/* Everything that is known now; what is not known is negative (numbers) or 0 (bytes). */
void st_nvml_sample(struct stoker_gpu_watch *watch, struct stoker_gpu_sample *out);
void st_nvml_close(struct stoker_gpu_watch *watch); /* NULL is fine */

#endif
