/* exchange_blocks.h - allocates memory of an exchange to batches
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EXT_EXCHANGE_BLOCKS_H
#define EXT_EXCHANGE_BLOCKS_H

#include "exchange_layout.h"

/* The block of a slot; -1: none. */
long ext_block_of(const struct exchange *self, uint32_t k);
/* The same, allocated now if there is none: one that the worker wrote to before, another one that has
 * memory, or any. */
long ext_block_take(const struct exchange *self, uint32_t k, uint32_t worker);
void ext_block_free(const struct exchange *self, uint32_t k);
void ext_slot_free(const struct exchange *self, uint32_t k); /* with its block */

#endif
