/* members.h - the members of a tar file, as Python's tarfile sees them
 *
 * ustar, PAX, GNU's long names and base-256 sizes. The end is a block of zeros, or the end of the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TAR_MEMBERS_H
#define ST_SOURCE_TAR_MEMBERS_H

#include "source/shards/window.h"

enum { ST_TAR_BLOCK = 512, ST_TAR_EXTENSION_MAX = 1 << 20 }; /* no header that speaks of others is larger */

struct st_tar_member {
    uint64_t start;       /* of its first header */
    uint64_t data, size;  /* of its payload, which may end behind the file: look before reading */
    struct st_bytes name; /* valid until the next member */
    bool regular;         /* a plain file, not a folder, a link or a device */
    bool sparse;          /* with holes left out: its bytes are not as they lie here */
};

struct st_tar_walk {
    struct st_window *window;
    uint64_t at; /* of the next header */
    struct st_buffer long_name;
    char name[257];
};

/* The next member; STOKER_END after the last. STOKER_ECORRUPT, with a sentence that names path and
 * offset, where the headers make no sense: then walk->at is where, and there is no going on.
 * What comes depends on walk->at and the file alone, not on the members before. */
int st_tar_next(struct st_tar_walk *walk, struct st_tar_member *out, struct stoker_error *err);
void st_tar_walk_free(struct st_tar_walk *walk);

/* Whether this block can be a tar header: its sum is right. */
bool st_tar_is_header(const uint8_t block[ST_TAR_BLOCK]);

#endif
