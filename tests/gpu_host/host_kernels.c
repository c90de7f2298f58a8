/* host_kernels.c - the kernels of src/gpu, run by the CPU
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu_host/host_kernels.h"
#include "gpu/blocks.h"
#include "gpu/image.h"

#include <stdlib.h>

/* What src/gpu/kernels.c loads: here there is nothing in it. */
const uint64_t st_gpu_image[] = {0};
const char st_gpu_image_about[] = "the host";

const size_t st_gpu_host_argument = sizeof(struct st_gpu_batch);

typedef void block_body(const struct st_gpu_batch *batch, struct st_tile *tile, uint32_t block);

static void all_blocks(block_body *body, const void *batch, unsigned blocks)
{
    struct st_tile *tile = malloc(sizeof *tile);
    if (!tile)
        abort();
    for (uint32_t block = 0; block < blocks; block++) {
        memset(tile, 0xa5, sizeof *tile); /* shared memory holds whatever was there */
        body(batch, tile, ((const struct st_gpu_batch *)batch)->first + block);
    }
    free(tile);
}

static void front_rows(const struct st_gpu_batch *batch, struct st_tile *tile, uint32_t block)
{
    struct st_gpu_batch own;
    memset(&own, 0xa5, sizeof own);
    st_front_rows_block(batch, &own, tile, block);
}

static void front_pending(const struct st_gpu_batch *batch, struct st_tile *tile, uint32_t block)
{
    struct st_gpu_batch own;
    memset(&own, 0xa5, sizeof own);
    st_front_pending_block(batch, &own, tile, block);
}

void st_gpu_host_front_rows(const void *batch, unsigned blocks) { all_blocks(front_rows, batch, blocks); }
void st_gpu_host_front_pending(const void *batch, unsigned blocks) { all_blocks(front_pending, batch, blocks); }
void st_gpu_host_rows(const void *batch, unsigned blocks) { all_blocks(st_rows_block, batch, blocks); }
void st_gpu_host_pending(const void *batch, unsigned blocks) { all_blocks(st_pending_block, batch, blocks); }

/* ---- the driver -------------------------------------------------------------------------------- */

struct CUfunc_st {
    const char *name;
    void (*run)(const void *batch, unsigned blocks);
};

unsigned st_gpu_host_launches;

static struct CUfunc_st functions[] = {{"st_gpu_rows", st_gpu_host_rows},
                                       {"st_gpu_pending", st_gpu_host_pending},
                                       {"st_gpu_front_rows", st_gpu_host_front_rows},
                                       {"st_gpu_front_pending", st_gpu_host_front_pending}};

static int error_name(int result, const char **name)
{
    (void)result;
    *name = "CUDA_ERROR_OF_THE_HOST";
    return 0;
}

static int memory(uint64_t *address, size_t bytes)
{
    void *block = malloc(bytes);
    *address = (uint64_t)(uintptr_t)block;
    return block ? ST_CU_SUCCESS : ST_CU_OUT_OF_MEMORY;
}

static int memory_free(uint64_t address)
{
    free((void *)(uintptr_t)address);
    return ST_CU_SUCCESS;
}

static int copy(uint64_t to, const void *from, size_t bytes, struct CUstream_st *stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return ST_CU_SUCCESS;
}

static int fill(uint64_t to, unsigned char value, size_t bytes, struct CUstream_st *stream)
{
    (void)stream;
    memset((void *)(uintptr_t)to, value, bytes);
    return ST_CU_SUCCESS;
}

static int module_load(struct CUmod_st **module, const void *image)
{
    *module = (struct CUmod_st *)(uintptr_t)image;
    return image == st_gpu_image ? ST_CU_SUCCESS : ST_CU_INVALID_IMAGE;
}

static int module_unload(struct CUmod_st *module)
{
    (void)module;
    return ST_CU_SUCCESS;
}

static int module_function(struct CUfunc_st **function, struct CUmod_st *module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, name)) {
            *function = &functions[i];
            return ST_CU_SUCCESS;
        }
    return ST_CU_NOT_FOUND;
}

static int launch_kernel(struct CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                         struct CUstream_st *stream, void **arguments, void **extra)
{
    (void)stream;
    if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x != ST_GPU_THREADS || block_y != 1 ||
        block_z != 1 || shared || extra)
        return ST_CU_INVALID_VALUE;
    st_gpu_host_launches++;
    function->run(arguments[0], grid_x);
    return ST_CU_SUCCESS;
}

static const struct st_cuda host_cuda = {
    .version = 13000,
    .GetErrorName = error_name,
    .GetErrorString = error_name,
    .MemAlloc = memory,
    .MemFree = memory_free,
    .MemcpyHtoDAsync = copy,
    .MemsetD8Async = fill,
    .ModuleLoadData = module_load,
    .ModuleUnload = module_unload,
    .ModuleGetFunction = module_function,
    .LaunchKernel = launch_kernel,
};

const struct st_cuda *st_gpu_host_cuda(void) { return &host_cuda; }

int st_gpu_host_run(const struct st_device_want *want, const struct st_gpu_launch *launch,
                    struct stoker_error *err)
{
    struct st_gpu_kernels *kernels;
    struct st_gpu_launch mine = *launch;
    int status = st_gpu_kernels_open(&kernels, &host_cuda, 0, want, NULL, err);
    if (status)
        return status;
    void *scratch = malloc(st_gpu_kernels_scratch(kernels) + 1);
    mine.scratch = (uint64_t)(uintptr_t)scratch;
    mine.stream = NULL;
    status = scratch ? st_gpu_kernels_run(kernels, &mine, err)
                     : st_fail(err, STOKER_ENOMEM, "no memory for the kernels' scratch");
    free(scratch);
    st_gpu_kernels_close(kernels);
    return status;
}
