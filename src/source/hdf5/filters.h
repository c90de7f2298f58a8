/* filters.h - HDF5 filters that are reversed without the library
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_FILTERS_H
#define ST_SOURCE_HDF5_FILTERS_H

#include "base/pixels.h"

#include <stdbool.h>

/* Reverses the byte shuffle: all first bytes, all second bytes, ... become elements of `size` bytes. */
void st_h5_unshuffle(uint8_t *restrict out, const uint8_t *restrict in, uint64_t bytes, uint32_t size);

/* h5py's LZF; false if the stream is damaged, or shorter or longer than `size` bytes. */
bool st_h5_unlzf(struct st_bytes in, uint8_t *out, uint64_t size);

/* Fletcher's checksum of big-endian 16-bit numbers. */
uint32_t st_h5_fletcher32(const uint8_t *data, uint64_t size);

#endif
