/* image.h - the kernels as compiled by nvcc, embedded by the build
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_IMAGE_H
#define ST_GPU_IMAGE_H

#include <stdint.h>

extern const uint64_t st_gpu_image[];   /* a fat binary, for cuModuleLoadData */
extern const char st_gpu_image_about[]; /* its contents: "sm_75 ... PTX of compute_120, CUDA 13.0" */

#endif
