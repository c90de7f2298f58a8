/* hold.h - keeps a snapshot of an LMDB database from being overwritten
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LMDB_HOLD_H
#define ST_SOURCE_LMDB_HOLD_H

#include <stdbool.h>
#include <stdint.h>

struct st_lmdb_hold;

/* Registers this process as a reader of the database at `path` (a folder, or a file if `in_folder` is
 * false) through liblmdb, and reports the transaction whose snapshot is preserved from then on. Returns
 * NULL, with UINT64_MAX as the transaction, if that is impossible: this build has no liblmdb, or there
 * is no lock file that this process may write; then the database must not be written while it is read.
 * The file's head must have been checked before (st_lmdb_head). */
struct st_lmdb_hold *st_lmdb_hold(const char *path, bool in_folder, uint64_t *transaction);
void st_lmdb_release(struct st_lmdb_hold *hold); /* NULL is allowed */

#endif
