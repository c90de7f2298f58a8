/* filters.h - the filters of HDF5 that are undone without its library
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_FILTERS_H
#define ST_SOURCE_HDF5_FILTERS_H

#include "base/pixels.h"

#include <stdbool.h>

/* All first bytes, all second bytes, ... back to elements of `size` bytes. */
void st_h5_unshuffle(uint8_t *restrict out, const uint8_t *restrict in, uint64_t bytes, uint32_t size);

/* h5py's LZF; false when the stream is damaged, shorter or longer than `size` bytes. */
bool st_h5_unlzf(struct st_bytes in, uint8_t *out, uint64_t size);

/* Fletcher's checksum, of 16-bit numbers with the higher byte first. */
uint32_t st_h5_fletcher32(const uint8_t *data, uint64_t size);

#endif
