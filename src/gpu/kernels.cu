/* kernels.cu - the kernels that the driver launches; their code is in blocks.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/blocks.h"

/* Blocks per multiprocessor: the oldest GPUs have too few threads for five. */
enum { ROWS_BLOCKS = ST_HAS_PRODUCTS ? 5 : 4 };

extern "C" __global__ void __launch_bounds__(ST_GPU_THREADS, ROWS_BLOCKS)
    st_gpu_rows(const __grid_constant__ struct st_gpu_batch batch)
{
    __shared__ struct st_tile tile;
    st_rows_block(&batch, &tile, batch.first + blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(ST_GPU_THREADS, 4)
    st_gpu_pending(const __grid_constant__ struct st_gpu_batch batch)
{
    __shared__ struct st_tile tile;
    st_pending_block(&batch, &tile, batch.first + blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(ST_GPU_THREADS, 4)
    st_gpu_front_rows(const __grid_constant__ struct st_gpu_batch batch)
{
    __shared__ struct st_tile tile;
    __shared__ struct st_gpu_batch own;
    st_front_rows_block(&batch, &own, &tile, batch.first + blockIdx.x);
}

extern "C" __global__ void __launch_bounds__(ST_GPU_THREADS, 4)
    st_gpu_front_pending(const __grid_constant__ struct st_gpu_batch batch)
{
    __shared__ struct st_tile tile;
    __shared__ struct st_gpu_batch own;
    st_front_pending_block(&batch, &own, &tile, batch.first + blockIdx.x);
}
