/* hold.h - keeps a state of an LMDB database from being written over
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LMDB_HOLD_H
#define ST_SOURCE_LMDB_HOLD_H

#include <stdbool.h>
#include <stdint.h>

struct st_lmdb_hold;

/* Enters this process among the readers of the database at `path` (a folder, or with `in_folder` false a
 * file), through liblmdb, and tells the transaction whose state is kept from then on. NULL and
 * UINT64_MAX where that cannot be: this build has no liblmdb, or there is no lock file that this process
 * may write, and then nobody is assumed to write the database while it is read. The file's beginning
 * must have been checked (st_lmdb_head). */
struct st_lmdb_hold *st_lmdb_hold(const char *path, bool in_folder, uint64_t *transaction);
void st_lmdb_release(struct st_lmdb_hold *hold); /* NULL is fine */

#endif
