/* fake_nvjpeg.c - an nvJPEG whose engines are libjpeg, for machines without a GPU
 *
 * As the real one does, it ends a call at the first file that it refuses, and says so for the whole
 * call. Its name in the loader's eyes is libnvjpeg.so.13.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg_planes.h"

enum { SUCCESS = 0, INVALID_PARAMETER = 2, BAD_JPEG = 3, ARCH_MISMATCH = 7, HARDWARE = 3, YUV = 1 };

struct image {
    unsigned char *channel[4];
    size_t pitch[4];
};
/* For the test. */
int fake_open, fake_calls, fake_allocated, fake_no_engines, fake_no_hardware;
int fake_sides[2]; /* of the images that memory was last allocated for */
/* Of the last call: where the files were, and where the images go. */
const unsigned char *fake_given[8], *fake_written[8];

static int decode(const unsigned char *data, size_t length, const struct image *to)
{
    return jpeg_planes(data, length, to->channel, to->pitch) ? SUCCESS : BAD_JPEG;
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
int nvjpegGetHardwareDecoderInfo(int *handle, unsigned *engines, unsigned *cores);
int nvjpegGetHardwareDecoderInfo(int *handle, unsigned *engines, unsigned *cores)
{
    (void)handle;
    *engines = fake_no_engines ? 0 : 7;
    *cores = 1;
    return SUCCESS;
}
int nvjpegJpegStateCreate(int *handle, int **state);
int nvjpegJpegStateCreate(int *handle, int **state)
{
    (void)handle;
    fake_open++;
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
int nvjpegDecodeBatched(int *handle, int *state, const unsigned char *const *data, const size_t *length,
                        struct image *to, void *stream);
int nvjpegDecodeBatched(int *handle, int *state, const unsigned char *const *data, const size_t *length,
                        struct image *to, void *stream)
{
    (void)handle, (void)stream;
    fake_calls++;
    int status = SUCCESS;
    for (int k = 0; k < *state && k < 8; k++) {
        fake_given[k] = data[k];
        fake_written[k] = to[k].channel[0];
    }
    for (int k = 0; !status && k < *state; k++)
        status = decode(data[k], length[k], &to[k]);
    return status;
}
