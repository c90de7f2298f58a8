/* three_channels.h - the order of bytes that takes pixels of three channels apart, for shuffles of 16
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_THREE_CHANNELS_H
#define ST_BASE_THREE_CHANNELS_H

#include <stdint.h>

/* Sixteen pixels are three vectors, and so are 16 values of each of three channels: the order of bytes
 * by which one vector contributes to another, [to][from]. -1 is a zero. */
static const int8_t st_order_apart[3][3][16] = {
    {{0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 4, 7, 10, 13}},
    {{1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14}},
    {{2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, 1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1},
     {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15}},
};

#endif
