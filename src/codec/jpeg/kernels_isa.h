/* kernels_isa.h - declarations shared by the kernel files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_KERNELS_ISA_H
#define ST_CODEC_JPEG_KERNELS_ISA_H

#include "codec/jpeg/kernels.h"

extern const struct st_jpeg_kernels st_jpeg_kernels_neon, st_jpeg_kernels_sse2, st_jpeg_kernels_avx2,
    st_jpeg_kernels_avx512;

struct st_jpeg_stream *st_jpeg_run_one(struct st_jpeg_scan *scan, struct st_jpeg_stream *a);
struct st_jpeg_stream *st_jpeg_run_two(struct st_jpeg_scan *scan, struct st_jpeg_stream *a,
                                       struct st_jpeg_stream *b);
/* Compiled for BMI2, whose shifts take any register; available wherever AVX2 is. */
struct st_jpeg_stream *st_jpeg_run_one_bmi2(struct st_jpeg_scan *scan, struct st_jpeg_stream *a);
struct st_jpeg_stream *st_jpeg_run_two_bmi2(struct st_jpeg_scan *scan, struct st_jpeg_stream *a,
                                            struct st_jpeg_stream *b);

void st_jpeg_band_first_c(struct st_jpeg_band *band, uint64_t *masks, int16_t *coefs, uint32_t count);
void st_jpeg_band_later_c(struct st_jpeg_band *band, uint64_t *masks, int16_t *coefs, uint32_t count);
void st_jpeg_band_first_bmi2(struct st_jpeg_band *band, uint64_t *masks, int16_t *coefs, uint32_t count);
void st_jpeg_band_later_bmi2(struct st_jpeg_band *band, uint64_t *masks, int16_t *coefs, uint32_t count);

bool st_jpeg_transform_neon(uint8_t *out, size_t stride, const struct st_jpeg_block *blocks,
                            int32_t count, const struct st_jpeg_quant *quant);
bool st_jpeg_transform_sse2(uint8_t *out, size_t stride, const struct st_jpeg_block *blocks,
                            int32_t count, const struct st_jpeg_quant *quant);
bool st_jpeg_transform_avx2(uint8_t *out, size_t stride, const struct st_jpeg_block *blocks,
                            int32_t count, const struct st_jpeg_quant *quant);
bool st_jpeg_transform_avx512(uint8_t *out, size_t stride, const struct st_jpeg_block *blocks,
                              int32_t count, const struct st_jpeg_quant *quant);

#endif
