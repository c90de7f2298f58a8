/* suffix.h - the members of a sample in a tar file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_PACK_SUFFIX_H
#define ST_CLI_PACK_SUFFIX_H

#include "cli/pack/pack.h"

struct pack_member {
    char suffix[PACK_SUFFIX_MAX + 8];
    struct st_bytes bytes; /* in the sample, or in `room` */
    struct st_buffer room;
};

/* Encodes a field as webdataset decodes it: numbers as text ("cls"), arrays as npy, and so on. The first
 * image and the first whole number of a sample have the usual short suffix; the others also have their
 * name. With `compress`, text and arrays are compressed with zstd. */
int pack_member_make(struct pack_member *out, const struct pack_sample *sample, uint32_t index,
                     const struct pack_options *opt, struct stoker_error *err);

#endif
