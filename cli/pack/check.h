/* check.h - whether the files of a pack are what they were when they were written
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_PACK_CHECK_H
#define ST_CLI_PACK_CHECK_H

#include "cli/pack/pack.h"

#include "source/held.h"

/* Is told of everything that is bad: which sample or file, and why. */
struct pack_findings {
    void (*bad)(void *context, const char *what, const char *why);
    void *context;
    uint64_t files, sums; /* looked at */
};

/* Every file that the folder's manifest lists: its size and its sum; and whether there are as many samples
 * as were packed. Nothing where there is no manifest. */
int pack_check_folder(const char *folder, uint64_t samples, struct pack_findings *findings,
                      struct stoker_error *err);
/* Every member of a tar file against the sums in its "__index__"; nothing where it has none. */
int pack_check_tar(const char *path, struct pack_findings *findings, struct stoker_error *err);

/* A file that a library wrote is whole: has it on the disk, notes its size and sum, and gives it its name.
 * `temporary` is empty then. */
int pack_finish_as(char *temporary, const char *path, struct st_pack_shard *shard, struct stoker_error *err);
/* The CRC32C of a part of a file. */
int pack_sum_range(const struct st_held *file, uint64_t offset, uint64_t size, uint32_t *crc,
                   struct stoker_error *err);

#endif
