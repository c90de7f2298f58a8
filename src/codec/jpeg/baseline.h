/* baseline.h - our own JPEG decoder: a region, the same bytes as libjpeg-turbo
 *
 * Handles the most common files: Huffman coded, 8 bits, one scan with all components or progressive;
 * grey, 4:4:4, 4:2:2, 4:4:0 or 4:2:0. Everything else, and every irregularity in the data, ends the
 * attempt with a reason, and the caller decodes the file with libjpeg-turbo from its first byte: so a
 * damaged file looks the same as everywhere else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_BASELINE_H
#define ST_CODEC_JPEG_BASELINE_H

#include "base/mem.h"
#include "base/pixels.h"
#include "codec/jpeg/marks.h"

#include <stdbool.h>

/* Why a file is not ours: one list for the enum and the names. */
#define ST_JPEG_REASONS(X)                                                                              \
    X(OURS, "decoded")                                                                                  \
    X(PROGRESSIVE, "progressive with unusual scans")                                                    \
    X(ARITHMETIC, "arithmetic coding")                                                                  \
    X(KIND, "neither baseline nor progressive")                                                         \
    X(PRECISION, "not 8 bits")                                                                          \
    X(COMPONENTS, "neither 1 nor 3 components")                                                         \
    X(SAMPLING, "unusual sampling")                                                                     \
    X(SCANS, "several scans")                                                                           \
    X(TABLES, "a table missing or invalid")                                                             \
    X(MARKER, "a marker out of place")                                                                  \
    X(HEADER, "a damaged header")                                                                       \
    X(SIZE, "too large")                                                                                \
    X(REGION, "the region is not in the image")                                                         \
    X(CODE, "an invalid code")                                                                          \
    X(INDEX, "a coefficient index past 63")                                                             \
    X(RANGE, "coefficients out of range")                                                               \
    X(DATA, "data missing")                                                                             \
    X(RESTART, "restart markers out of sequence")                                                       \
    X(MEMORY, "no memory")

enum st_jpeg_reason {
#define X(name, text) ST_JPEG_##name,
    ST_JPEG_REASONS(X)
#undef X
        ST_JPEG_REASON_COUNT
};

const char *st_jpeg_reason_name(enum st_jpeg_reason reason);

/* What a worker keeps from image to image: tables by content, and the selected kernels. */
struct st_jpeg;
struct st_jpeg *st_jpeg_new(void); /* NULL: no memory */
void st_jpeg_free(struct st_jpeg *state);

/* RGB pixels of the region, allocated from the arena: 0, or the reason for failure. `marks` is NULL, or
 * what earlier decodes of these same bytes have noted there; this one adds to it. If `clean` is not
 * NULL, all of the image's data are decoded, an irregularity anywhere is a reason, and *clean says
 * whether there was nothing unusual at all, not even bytes that no MCU needs; of progressive files, it
 * never says so, and no marks are noted. What this says is kept on disk: if it becomes stricter,
 * ST_KNOWN_RULES of source/known/known.h is to be raised. */
enum st_jpeg_reason st_jpeg_decode(struct st_jpeg *state, struct st_bytes in, struct st_region region,
                                   bool *clean, struct st_jpeg_marks *marks, struct st_arena *arena,
                                   struct st_view *out);

/* Whether the last file was a progressive one. */
bool st_jpeg_was_progressive(const struct st_jpeg *state);

/* Whether the file is regular, without decoding it (regular.c): our decoder accepts it by its headers,
 * as a file of one scan, its tables are valid, and its scan contains only the expected restart markers
 * up to its end marker. Bits in between may be wrong; libjpeg only warns about these, so decoding does
 * not fail. */
bool st_jpeg_is_regular(struct st_bytes in, uint32_t *width, uint32_t *height, uint32_t *components);

#endif
