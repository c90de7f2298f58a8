/* check.h - checks that the files of a pack are unchanged since they were written
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_PACK_CHECK_H
#define ST_CLI_PACK_CHECK_H

#include "cli/pack/pack.h"

#include "source/held.h"

/* Receives every problem: which sample or file, and why. */
struct pack_findings {
    void (*bad)(void *context, const char *what, const char *why);
    void *context;
    uint64_t files, sums; /* checked */
};

/* Checks the size and checksum of every file in the manifest, and the number of samples. Does nothing
 * without a manifest. */
int pack_check_folder(const char *folder, uint64_t samples, struct pack_findings *findings,
                      struct stoker_error *err);
/* Compares every member of a tar file with the checksums in its "__index__"; does nothing without
 * one. */
int pack_check_tar(const char *path, struct pack_findings *findings, struct stoker_error *err);

/* Finishes a file that a library wrote: syncs it, notes size and checksum, and gives it its final name.
 * `temporary` is empty after that. */
int pack_finish_as(char *temporary, const char *path, struct st_pack_shard *shard,
                   struct stoker_error *err);
/* The CRC32C of a part of a file. */
int pack_sum_range(const struct st_held *file, uint64_t offset, uint64_t size, uint32_t *crc,
                   struct stoker_error *err);

#endif
