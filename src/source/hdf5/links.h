/* links.h - whether the library can be let loose on an HDF5 group's links
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_LINKS_H
#define ST_SOURCE_HDF5_LINKS_H

#include "source/held.h"

/* Of a group of the older kind: a tree of nodes with links, and a heap of their names, at these
 * addresses, which count from `base`. STOKER_ECORRUPT where one of them, or a name, is not where it
 * should be: the library copies the heap in one piece, and follows the rest without a look. */
int st_h5_links_check(const struct st_held *file, uint64_t base, uint64_t tree, uint64_t heap,
                      struct stoker_error *err);

/* Of a group of the newer kind with many links: a tree of where they lie in a heap. */
int st_h5_links_check_tree(const struct st_held *file, uint64_t base, uint64_t tree,
                           struct stoker_error *err);

#endif
