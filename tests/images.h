/* images.h - small encoded images for tests, made from a seed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_IMAGES_H
#define ST_TESTS_IMAGES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <stoker/stoker.h>

/* A smooth pattern with some noise, so that every image and pixel differs. */
static inline uint8_t *test_pixels(uint32_t seed, int width, int height)
{
    uint8_t *rgb = malloc((size_t)width * (size_t)height * 3);
    uint32_t noise = seed * 2654435761u + 1;
    for (int y = 0; rgb && y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++) {
                noise = noise * 1664525u + 1013904223u;
                rgb[(y * width + x) * 3 + c] =
                    (uint8_t)((uint32_t)(x * (3 + c) + y * (5 - c)) + seed * 31 + (noise >> 28));
            }
    return rgb;
}

static inline struct stoker_item test_ppm(uint32_t seed, int width, int height)
{
    char head[64];
    const int head_size = snprintf(head, sizeof head, "P6\n%d %d\n255\n", width, height);
    const size_t size = (size_t)width * (size_t)height * 3;
    uint8_t *pixels = test_pixels(seed, width, height), *data = malloc((size_t)head_size + size);
    memcpy(data, head, (size_t)head_size);
    memcpy(data + head_size, pixels, size);
    free(pixels);
    return (struct stoker_item){data, (size_t)head_size + size, seed % 10};
}

enum test_jpeg_kinds { TEST_JPEG_USUAL, TEST_JPEG_PROGRESSIVE, TEST_JPEG_GREY };

static inline struct stoker_item test_jpeg_kind(uint32_t seed, int width, int height, enum test_jpeg_kinds kind)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long size = 0;
    uint8_t *pixels = test_pixels(seed, width, height);

    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &data, &size);
    c.image_width = (JDIMENSION)width;
    c.image_height = (JDIMENSION)height;
    c.input_components = 3;
    c.in_color_space = JCS_RGB;
    jpeg_set_defaults(&c);
    if (kind == TEST_JPEG_GREY)
        jpeg_set_colorspace(&c, JCS_GRAYSCALE);
    if (kind == TEST_JPEG_PROGRESSIVE)
        jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = pixels + (size_t)c.next_scanline * (size_t)width * 3;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(pixels);
    return (struct stoker_item){data, size, seed % 10};
}

static inline struct stoker_item test_jpeg(uint32_t seed, int width, int height)
{
    return test_jpeg_kind(seed, width, height, TEST_JPEG_USUAL);
}

static inline struct stoker_item test_jpeg_progressive(uint32_t seed, int width, int height)
{
    return test_jpeg_kind(seed, width, height, TEST_JPEG_PROGRESSIVE);
}

/* `count` images of differing sizes: mostly JPEG, every fifth a PPM. */
static inline struct stoker_item *test_items(uint32_t count)
{
    struct stoker_item *items = calloc(count ? count : 1, sizeof *items);
    for (uint32_t k = 0; items && k < count; k++) {
        const int width = 40 + (int)(k * 7 % 50), height = 33 + (int)(k * 11 % 40);
        items[k] = k % 5 == 4 ? test_ppm(k, width, height) : test_jpeg(k, width, height);
    }
    return items;
}

static inline void test_items_free(struct stoker_item *items, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        free((void *)(uintptr_t)items[k].data);
    free(items);
}

#endif
