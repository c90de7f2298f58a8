/* fake_nvjpeg.c - an nvJPEG whose hardware is libjpeg, for machines without a GPU
 *
 * As the real one does, it ends a call at the first file that it refuses, and says so for the whole
 * call. Its name in the loader's eyes is libnvjpeg.so.13.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg_planes.h"

#include <unistd.h>

enum {
    SUCCESS = 0,
    INVALID_PARAMETER = 2,
    BAD_JPEG = 3,
    ARCH_MISMATCH = 7,
    NOT_SUPPORTED = 9,
    HARDWARE = 3,
    YUV = 1
};

struct image {
    unsigned char *channel[4];
    size_t pitch[4];
};
struct params {
    int format;
    struct planes_region region;
};
/* For the test. */
int fake_open, fake_calls, fake_allocated, fake_no_decoders, fake_no_hardware;
int fake_states; /* made so far */
/* Its start lasts while fake_slow is set, and tells by fake_starting that it has begun. */
_Atomic int fake_slow, fake_starting;
int fake_regions;    /* images of which a part was decoded */
/* 1: no parameters can be made; 2: they are refused; 3: the images are; 4: regions are ignored; 5: they are others */
int fake_no_regions;
int fake_sides[2]; /* of the images that memory was last allocated for */
/* Of the last call: where the files were, and where the images go. */
const unsigned char *fake_given[8], *fake_written[8];

static int decode(const unsigned char *data, size_t length, const struct image *to, const struct params *params)
{
    struct planes_region region = params ? params->region : (struct planes_region){0};
    if (params && params->format != YUV)
        return INVALID_PARAMETER;
    fake_regions += params != NULL;
    region.x -= fake_no_regions == 5 ? 2 : 0;
    return jpeg_planes(data, length, params && fake_no_regions != 4 ? &region : NULL, to->channel, to->pitch) ? SUCCESS
                                                                                                              : BAD_JPEG;
}

int nvjpegGetProperty(int which, int *value);
int nvjpegGetProperty(int which, int *value)
{
    *value = which == 0 ? 13 : 0;
    return SUCCESS;
}

int nvjpegCreateEx(int backend, void *device, void *pinned, unsigned flags, int **handle);
int nvjpegCreateEx(int backend, void *device, void *pinned, unsigned flags, int **handle)
{
    if (fake_no_hardware)
        return ARCH_MISMATCH;
    if (backend != HARDWARE || device || pinned || flags)
        return INVALID_PARAMETER;
    fake_starting = 1;
    while (fake_slow)
        usleep(200);
    fake_starting = 0;
    fake_open++;
    *handle = calloc(1, sizeof **handle);
    return SUCCESS;
}
int nvjpegDestroy(int *handle);
int nvjpegDestroy(int *handle)
{
    fake_open--;
    free(handle);
    return SUCCESS;
}
int nvjpegGetHardwareDecoderInfo(int *handle, unsigned *decoders, unsigned *cores);
int nvjpegGetHardwareDecoderInfo(int *handle, unsigned *decoders, unsigned *cores)
{
    (void)handle;
    *decoders = fake_no_decoders ? 0 : 7;
    *cores = 1;
    return SUCCESS;
}
int nvjpegJpegStateCreate(int *handle, int **state);
int nvjpegJpegStateCreate(int *handle, int **state)
{
    (void)handle;
    fake_open++;
    fake_states++;
    *state = calloc(1, sizeof **state);
    return SUCCESS;
}
int nvjpegJpegStateDestroy(int *state);
int nvjpegJpegStateDestroy(int *state)
{
    fake_open--;
    free(state);
    return SUCCESS;
}

int nvjpegDecodeBatchedInitialize(int *handle, int *state, int batch, int threads, int format);
int nvjpegDecodeBatchedInitialize(int *handle, int *state, int batch, int threads, int format)
{
    (void)handle;
    *state = batch;
    return batch > 0 && threads == 1 && format == YUV ? SUCCESS : INVALID_PARAMETER;
}
int nvjpegDecodeBatchedPreAllocate(int *handle, int *state, int batch, int width, int height, int sampling,
                                   int format);
int nvjpegDecodeBatchedPreAllocate(int *handle, int *state, int batch, int width, int height, int sampling,
                                   int format)
{
    (void)handle, (void)state;
    fake_allocated++;
    fake_sides[0] = width;
    fake_sides[1] = height;
    return batch > 0 && width > 0 && height > 0 && !sampling && format == YUV ? SUCCESS : INVALID_PARAMETER;
}
static int decode_all(const int *state, const unsigned char *const *data, const size_t *length, const struct image *to,
                      struct params *const *params)
{
    fake_calls++;
    int status = SUCCESS;
    for (int k = 0; k < *state && k < 8; k++) {
        fake_given[k] = data[k];
        fake_written[k] = to[k].channel[0];
    }
    for (int k = 0; !status && k < *state; k++)
        status = decode(data[k], length[k], &to[k], params ? params[k] : NULL);
    return status;
}
int nvjpegDecodeBatched(int *handle, int *state, const unsigned char *const *data, const size_t *length,
                        struct image *to, void *stream);
int nvjpegDecodeBatched(int *handle, int *state, const unsigned char *const *data, const size_t *length,
                        struct image *to, void *stream)
{
    (void)handle, (void)stream;
    return decode_all(state, data, length, to, NULL);
}
int nvjpegDecodeBatchedEx(int *handle, int *state, const unsigned char *const *data, const size_t *length,
                          struct image *to, struct params **params, void *stream);
int nvjpegDecodeBatchedEx(int *handle, int *state, const unsigned char *const *data, const size_t *length,
                          struct image *to, struct params **params, void *stream)
{
    (void)handle, (void)stream;
    return fake_no_regions == 3 ? NOT_SUPPORTED : decode_all(state, data, length, to, params);
}

int nvjpegDecodeParamsCreate(int *handle, struct params **params);
int nvjpegDecodeParamsCreate(int *handle, struct params **params)
{
    (void)handle;
    if (fake_no_regions == 1)
        return NOT_SUPPORTED;
    fake_open++;
    *params = calloc(1, sizeof **params);
    return SUCCESS;
}
int nvjpegDecodeParamsDestroy(struct params *params);
int nvjpegDecodeParamsDestroy(struct params *params)
{
    fake_open--;
    free(params);
    return SUCCESS;
}
int nvjpegDecodeParamsSetOutputFormat(struct params *params, int format);
int nvjpegDecodeParamsSetOutputFormat(struct params *params, int format)
{
    params->format = format;
    return SUCCESS;
}
int nvjpegDecodeParamsSetROI(struct params *params, int x, int y, int width, int height);
int nvjpegDecodeParamsSetROI(struct params *params, int x, int y, int width, int height)
{
    if (fake_no_regions == 2 || x < 0 || y < 0 || width < 1 || height < 1)
        return INVALID_PARAMETER;
    params->region = (struct planes_region){(uint32_t)x, (uint32_t)y, (uint32_t)width, (uint32_t)height};
    return SUCCESS;
}
