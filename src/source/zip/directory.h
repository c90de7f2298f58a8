/* directory.h - reads the directory of a zip archive
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ZIP_DIRECTORY_H
#define ST_SOURCE_ZIP_DIRECTORY_H

#include "source/held.h"

enum { ST_ZIP_STORED = 0, ST_ZIP_DEFLATED = 8 };

struct st_zip_member {
    uint64_t name;         /* offset in st_zip.text, NUL-terminated */
    uint64_t packed, size; /* compressed and uncompressed bytes */
    uint64_t at, room;     /* offset of its local header, and the bytes from there to the next member */
    uint32_t crc;
    uint16_t method;
    bool encrypted;
    const char *damage; /* NULL, or what is wrong with its entry; then it cannot be read */
};

struct st_zip {
    struct st_zip_member *members; /* in the directory's order, without folders */
    uint64_t count;
    char *text;
};

/* Reads the directory at the end of the file. Members that overlap, are outside the file, or have
 * damaged entries are listed but cannot be read. If the next entry cannot be found at all, the archive
 * is rejected. */
int st_zip_open(struct st_zip *zip, const struct st_held *file, struct stoker_error *err);
void st_zip_close(struct st_zip *zip); /* safe after a failed open */

/* Finds a member's compressed bytes in the `room` bytes that start at its local header. */
int st_zip_find(const struct st_zip *zip, const struct st_zip_member *member, struct st_bytes room,
                struct st_bytes *packed, struct stoker_error *err);
/* Decompresses into `out`, which has room for the member's size (stored members are copied), and
 * verifies the checksum. Messages name the member. */
int st_zip_unpack(const struct st_zip *zip, const struct st_zip_member *member, struct st_bytes packed,
                  uint8_t *out, struct stoker_error *err);
/* Only verifies the checksum: for stored members, used in place. */
int st_zip_verify(const struct st_zip *zip, const struct st_zip_member *member, struct st_bytes bytes,
                  struct stoker_error *err);
/* Fails if the member cannot be read: unsupported method, encrypted, or an impossible size. */
int st_zip_readable(const struct st_zip *zip, const struct st_zip_member *member,
                    struct stoker_error *err);

static inline const char *st_zip_name(const struct st_zip *zip, const struct st_zip_member *member)
{
    return zip->text + member->name;
}

#endif
