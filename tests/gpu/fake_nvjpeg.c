/* fake_nvjpeg.c - an nvJPEG whose engines are libjpeg, for machines without a GPU
 *
 * As the real one does, it ends a call at the first file that it refuses, and says so for the whole
 * call. Its name in the loader's eyes is libnvjpeg.so.13.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum { SUCCESS = 0, INVALID_PARAMETER = 2, BAD_JPEG = 3, ARCH_MISMATCH = 7, HARDWARE = 3, RGBI = 5 };

struct image {
    unsigned char *channel[4];
    size_t pitch[4];
};
struct trouble {
    struct jpeg_error_mgr mgr;
    jmp_buf jump;
};

/* For the test. */
int fake_open, fake_calls, fake_no_engines, fake_no_hardware;

static void on_error(j_common_ptr c) { longjmp(((struct trouble *)c->err)->jump, 1); }
static void on_message(j_common_ptr c, int level) { (void)c, (void)level; }

static int decode(const unsigned char *data, size_t length, const struct image *to)
{
    struct jpeg_decompress_struct d;
    struct trouble trouble;
    d.err = jpeg_std_error(&trouble.mgr);
    trouble.mgr.error_exit = on_error;
    trouble.mgr.emit_message = on_message;
    if (setjmp(trouble.jump)) {
        jpeg_destroy_decompress(&d);
        return BAD_JPEG;
    }
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, (unsigned char *)(uintptr_t)data, length);
    jpeg_read_header(&d, TRUE);
    d.out_color_space = JCS_RGB;
    jpeg_start_decompress(&d);
    while (d.output_scanline < d.output_height) {
        JSAMPROW row = to->channel[0] + d.output_scanline * to->pitch[0];
        jpeg_read_scanlines(&d, &row, 1);
    }
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    return SUCCESS;
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
    return batch > 0 && threads == 1 && format == RGBI ? SUCCESS : INVALID_PARAMETER;
}
int nvjpegDecodeBatched(int *handle, int *state, const unsigned char *const *data, const size_t *length,
                        struct image *to, void *stream);
int nvjpegDecodeBatched(int *handle, int *state, const unsigned char *const *data, const size_t *length,
                        struct image *to, void *stream)
{
    (void)handle, (void)stream;
    fake_calls++;
    int status = SUCCESS;
    for (int k = 0; !status && k < *state; k++)
        status = decode(data[k], length[k], &to[k]);
    return status;
}
