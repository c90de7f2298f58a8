/* jpeg_recode.h - the loss of pixels that are written as a JPEG and read again
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_RECODE_H
#define ST_CODEC_JPEG_RECODE_H

#include "base/cpu.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"

/* The pixels that libjpeg-turbo gives for the file that it writes of these, with its defaults and a
 * quality of 1 to 100. `in` has 1 or 3 channels, and so has `out`, which comes from the arena. With
 * `swapped`, red and blue change their places before and after. */
int st_jpeg_recode(const struct st_view *in, int32_t quality, bool swapped, enum st_cpu_level level,
                   struct st_arena *arena, struct st_view *out, struct stoker_error *err);
/* The same with libjpeg alone, which st_jpeg_recode asks for what its own code does not have: rare
 * noise of the lowest qualities. For tests. */
int st_jpeg_recode_by_libjpeg(const struct st_view *in, int32_t quality, bool swapped,
                              struct st_arena *arena, struct st_view *out, struct stoker_error *err);

#endif
