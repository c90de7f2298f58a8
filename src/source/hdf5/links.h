/* links.h - checks an HDF5 group's links before the library reads them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_LINKS_H
#define ST_SOURCE_HDF5_LINKS_H

#include "source/held.h"

/* For a group in the older format: a tree of nodes with links and a heap of their names, at these
 * addresses, which are relative to `base`. STOKER_ECORRUPT if one of them, or a name, is not where it
 * should be: the library copies the heap as a whole and follows the rest without checks. */
int st_h5_links_check(const struct st_held *file, uint64_t base, uint64_t tree, uint64_t heap,
                      struct stoker_error *err);

/* For a group in the newer format with many links: a tree of their locations in a heap. */
int st_h5_links_check_tree(const struct st_held *file, uint64_t base, uint64_t tree,
                           struct stoker_error *err);

#endif
