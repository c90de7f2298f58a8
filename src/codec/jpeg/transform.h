/* transform.h - the constants of libjpeg's accurate integer transform
 *
 * The inverse DCT of Loeffler, Ligtenberg and Moschytz with 13 fractional bits. Here each of the eight
 * outputs of a pass is written as one sum of products whose constants are sums of the original ones: the
 * result is the same integers, in whatever order they are added.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_TRANSFORM_H
#define ST_CODEC_JPEG_TRANSFORM_H

enum {
    ST_IDCT_BITS = 13,
    ST_IDCT_SHIFT_1 = 11, /* the first pass keeps two extra bits, */
    ST_IDCT_SHIFT_2 = 18, /* which the second drops, together with the transform's factor of 8 */

    /* even part: (in0 +- in4) << 13, and terms of in2 and in6 */
    ST_IDCT_E2A = 4433 + 6270,
    ST_IDCT_E6A = 4433, /* added to outputs 0 and 7, subtracted from 3 and 4 */
    ST_IDCT_E2B = 4433,
    ST_IDCT_E6B = 4433 - 15137, /* added to outputs 1 and 6, subtracted from 2 and 5 */

    /* odd part: outputs k and 7 - k are even +- odd k, of in1, in3, in5, in7 */
    ST_IDCT_01 = 9633 + 12299 - 7373 - 3196,
    ST_IDCT_03 = 9633,
    ST_IDCT_05 = 9633 - 3196,
    ST_IDCT_07 = 9633 - 7373,
    ST_IDCT_11 = 9633,
    ST_IDCT_13 = 9633 + 25172 - 20995 - 16069,
    ST_IDCT_15 = 9633 - 20995,
    ST_IDCT_17 = 9633 - 16069,
    ST_IDCT_21 = 9633 - 3196,
    ST_IDCT_23 = 9633 - 20995,
    ST_IDCT_25 = 9633 + 16819 - 20995 - 3196,
    ST_IDCT_27 = 9633,
    ST_IDCT_31 = 9633 - 7373,
    ST_IDCT_33 = 9633 - 16069,
    ST_IDCT_35 = 9633,
    ST_IDCT_37 = 9633 + 2446 - 7373 - 16069,

    /* With at most this many coefficients, only the upper left quarter of a block is not zero. */
    ST_IDCT_QUARTER = 10,
};

#endif
