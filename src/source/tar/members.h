/* members.h - walks the members of a tar file, with the results of Python's tarfile
 *
 * Supports ustar, PAX, GNU long names and base-256 sizes. The archive ends at a block of zeros or at the
 * end of the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TAR_MEMBERS_H
#define ST_SOURCE_TAR_MEMBERS_H

#include "source/shards/window.h"

enum { ST_TAR_BLOCK = 512, ST_TAR_EXTENSION_MAX = 1 << 20 }; /* larger extension headers are rejected */

struct st_tar_member {
    uint64_t start;       /* offset of its first header */
    uint64_t data,
        size; /* of its payload, which may extend past the end of the file: check before reading */
    struct st_bytes name; /* valid until the next member */
    bool regular;         /* a regular file, not a folder, link or device */
    bool sparse;          /* stored without its holes: the payload is not the file's content */
};

struct st_tar_walk {
    struct st_window *window;
    uint64_t at; /* offset of the next header */
    struct st_buffer long_name;
    char name[257];
};

/* The next member; STOKER_END after the last. STOKER_ECORRUPT, with a message that names path and
 * offset, if the headers are invalid: then walk->at is where, and the walk cannot continue. The result
 * depends only on walk->at and the file, not on earlier members. */
int st_tar_next(struct st_tar_walk *walk, struct st_tar_member *out, struct stoker_error *err);
void st_tar_walk_free(struct st_tar_walk *walk);

/* Whether this block can be a tar header: its checksum is right. */
bool st_tar_is_header(const uint8_t block[ST_TAR_BLOCK]);

#endif
