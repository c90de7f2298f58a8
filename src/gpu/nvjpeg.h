/* nvjpeg.h - nvJPEG, opened at run time, for the JPEG hardware of a GPU
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_NVJPEG_H
#define ST_GPU_NVJPEG_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct CUstream_st;
struct nvjpegDecodeParams;
struct nvjpegHandle;
struct nvjpegJpegState;

/* Statuses, backends and formats as numbered by the library: an ABI, so they do not change. */
enum {
    ST_NVJPEG_SUCCESS = 0,
    ST_NVJPEG_BACKEND_HARDWARE = 3,
    ST_NVJPEG_OUTPUT_YUV = 1, /* planes, with chroma as it is in the file */
    ST_NVJPEG_CSS_444 = 0,
};

struct st_nvjpeg_image {
    unsigned char *channel[4];
    size_t pitch[4];
};

/* X(name, symbol, arguments): all return a status. */
#define ST_NVJPEG_MAP(X)                                                                                \
    X(GetProperty, nvjpegGetProperty, (int which, int *value))                                          \
    X(CreateEx, nvjpegCreateEx,                                                                         \
      (int backend, void *device_memory, void *pinned_memory, unsigned flags,                           \
       struct nvjpegHandle **handle))                                                                   \
    X(Destroy, nvjpegDestroy, (struct nvjpegHandle * handle))                                           \
    X(JpegStateCreate, nvjpegJpegStateCreate,                                                           \
      (struct nvjpegHandle * handle, struct nvjpegJpegState * *state))                                  \
    X(JpegStateDestroy, nvjpegJpegStateDestroy, (struct nvjpegJpegState * state))                       \
    X(DecodeBatchedInitialize, nvjpegDecodeBatchedInitialize,                                           \
      (struct nvjpegHandle * handle, struct nvjpegJpegState * state, int batch, int cpu_threads,        \
       int format))                                                                                     \
    X(DecodeBatched, nvjpegDecodeBatched,                                                               \
      (struct nvjpegHandle * handle, struct nvjpegJpegState * state, const unsigned char *const *data,  \
       const size_t *length, struct st_nvjpeg_image *to, struct CUstream_st *stream))

/* Functions that older versions lack; NULL if missing. */
#define ST_NVJPEG_MORE(X)                                                                               \
    X(GetHardwareDecoderInfo, nvjpegGetHardwareDecoderInfo,                                             \
      (struct nvjpegHandle * handle, unsigned *decoders, unsigned *cores))                              \
    X(DecodeBatchedPreAllocate, nvjpegDecodeBatchedPreAllocate,                                         \
      (struct nvjpegHandle * handle, struct nvjpegJpegState * state, int batch, int width, int height,  \
       int subsampling, int format))                                                                    \
    X(DecodeParamsCreate, nvjpegDecodeParamsCreate,                                                     \
      (struct nvjpegHandle * handle, struct nvjpegDecodeParams * *params))                              \
    X(DecodeParamsDestroy, nvjpegDecodeParamsDestroy, (struct nvjpegDecodeParams * params))             \
    X(DecodeParamsSetOutputFormat, nvjpegDecodeParamsSetOutputFormat,                                   \
      (struct nvjpegDecodeParams * params, int format))                                                 \
    X(DecodeParamsSetROI, nvjpegDecodeParamsSetROI,                                                     \
      (struct nvjpegDecodeParams * params, int x, int y, int width, int height))                        \
    X(DecodeBatchedEx, nvjpegDecodeBatchedEx,                                                           \
      (struct nvjpegHandle * handle, struct nvjpegJpegState * state, const unsigned char *const *data,  \
       const size_t *length, struct st_nvjpeg_image *to, struct nvjpegDecodeParams **params,            \
       struct CUstream_st *stream))

/* The library's functions by name, without prefix: nvjpeg->DecodeBatched(...). */
struct st_nvjpeg {
    void *library;
    int version[3];
#define X(name, symbol, arguments) int(*name) arguments;
    ST_NVJPEG_MAP(X)
    ST_NVJPEG_MORE(X)
#undef X
};

/* Finds the library: at `path` or, if that is NULL, one that is already loaded, the system's, the one
 * next to the CUDA runtime in use (as in PyPI's packages), or the toolkit's. The error names everything
 * that was tried. */
int st_nvjpeg_load(struct st_nvjpeg *out, const char *path, struct stoker_error *err);
void st_nvjpeg_unload(struct st_nvjpeg *nvjpeg); /* safe on a zeroed one */

const char *st_nvjpeg_status(int status);

#endif
