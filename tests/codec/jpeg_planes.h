/* jpeg_planes.h - the samples of a JPEG by libjpeg, for tests of devices that decode to planes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_JPEG_PLANES_H
#define ST_TESTS_JPEG_PLANES_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum { PLANES_ROWS_MAX = 4 * DCTSIZE };

struct planes_failure {
    struct jpeg_error_mgr mgr;
    jmp_buf jump;
};

static inline void planes_error(j_common_ptr c) { longjmp(((struct planes_failure *)c->err)->jump, 1); }
static inline void planes_message(j_common_ptr c, int level) { (void)c, (void)level; }

/* In pixels; it has to start with an MCU. */
struct planes_region {
    uint32_t x, y, width, height;
};

/* Of one side of a component, `factor` of `most`: the samples of pixels `first` to `first + count`. */
static inline void planes_side(JDIMENSION *first, JDIMENSION *count, int factor, int most)
{
    const JDIMENSION f = (JDIMENSION)factor, m = (JDIMENSION)most;
    *first = *first * f / m;
    *count = (*count * f + m - 1) / m;
}

/* One row of MCUs, copied to the planes without the padding, and without what is not of the region. */
static inline void planes_copy(const struct jpeg_decompress_struct *d, JSAMPARRAY *rows, JDIMENSION mcu_row,
                               const struct planes_region *region, uint8_t *const to[3], const size_t pitch[3])
{
    for (int c = 0; c < d->num_components; c++) {
        const jpeg_component_info *part = &d->comp_info[c];
        const JDIMENSION each = (JDIMENSION)part->v_samp_factor * DCTSIZE, from = mcu_row * each;
        JDIMENSION x = region->x, y = region->y, width = region->width, height = region->height;
        planes_side(&x, &width, part->h_samp_factor, d->max_h_samp_factor);
        planes_side(&y, &height, part->v_samp_factor, d->max_v_samp_factor);
        for (JDIMENSION k = 0; k < each; k++)
            if (from + k >= y && from + k < y + height)
                memcpy(to[c] + (from + k - y) * pitch[c], rows[c][k] + x, width);
    }
}

/* The samples of a region, NULL: of the whole image. False: libjpeg refuses the file. */
static inline bool jpeg_planes(const uint8_t *data, size_t size, const struct planes_region *region,
                               uint8_t *const to[3], const size_t pitch[3])
{
    struct jpeg_decompress_struct d;
    struct planes_failure failure;
    uint8_t *volatile memory = NULL;
    JSAMPROW row[3][PLANES_ROWS_MAX];
    JSAMPARRAY rows[3] = {row[0], row[1], row[2]};
    d.err = jpeg_std_error(&failure.mgr);
    failure.mgr.error_exit = planes_error;
    failure.mgr.emit_message = planes_message;
    if (setjmp(failure.jump)) {
        jpeg_destroy_decompress(&d);
        free(memory);
        return false;
    }
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, (unsigned char *)(uintptr_t)data, size);
    jpeg_read_header(&d, TRUE);
    d.raw_data_out = TRUE;
    d.out_color_space = d.jpeg_color_space;
    jpeg_start_decompress(&d);
    const struct planes_region whole = {0, 0, d.output_width, d.output_height};
    const size_t wide = (size_t)d.output_width + 8 * DCTSIZE;
    memory = malloc(wide * PLANES_ROWS_MAX * 3);
    for (int c = 0; c < 3; c++)
        for (int k = 0; k < PLANES_ROWS_MAX; k++)
            row[c][k] = memory + ((size_t)c * PLANES_ROWS_MAX + (size_t)k) * wide;
    const JDIMENSION each = (JDIMENSION)d.max_v_samp_factor * DCTSIZE;
    for (JDIMENSION k = 0; d.output_scanline < d.output_height; k++) {
        jpeg_read_raw_data(&d, rows, each);
        planes_copy(&d, rows, k, region ? region : &whole, to, pitch);
    }
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    free(memory);
    return true;
}

#endif
