/* jpeg_probe.h - whether nvJPEG decodes the regions that it is asked for
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_JPEG_PROBE_H
#define ST_GPU_JPEG_PROBE_H

#include "gpu/cuda.h"
#include "gpu/nvjpeg.h"

#include <stdbool.h>

struct st_jpeg_probe {
    const struct st_nvjpeg *nvjpeg; /* with all of its functions for regions */
    const struct st_cuda *cuda;
    struct nvjpegHandle *handle;
    struct nvjpegJpegState *state;
    struct nvjpegDecodeParams *params; /* for planes */
    struct CUstream_st *stream;
    uint8_t *memory; /* pinned */
    uint64_t bytes;
};

/* Tries it with an image of its own, and compares: a library or GPU that ignored the region would write
 * beyond the memory for it. The context is current; nothing else uses any of these meanwhile. The state
 * has to be initialised again afterwards. */
bool st_jpeg_probe_regions(const struct st_jpeg_probe *probe);

#endif
