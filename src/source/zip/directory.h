/* directory.h - what a zip archive says it holds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ZIP_DIRECTORY_H
#define ST_SOURCE_ZIP_DIRECTORY_H

#include "source/held.h"

enum { ST_ZIP_STORED = 0, ST_ZIP_DEFLATED = 8 };

struct st_zip_member {
    uint64_t name;         /* in the archive's text, terminated */
    uint64_t packed, size; /* bytes in the archive, and as they were */
    uint64_t at, room;     /* its local header, and the bytes from there to the next member */
    uint32_t crc;
    uint16_t method;
    bool encrypted;
    const char *damage; /* NULL, or what is wrong with its entry: it cannot be read */
};

struct st_zip {
    struct st_zip_member *members; /* in the directory's order, without folders */
    uint64_t count;
    char *text;
};

/* Reads the directory at the end of the file. Members that overlap, lie outside of the file, or whose entries
 * are damaged, are there and cannot be read. Where not even the next entry can be found, the archive is
 * refused. */
int st_zip_open(struct st_zip *zip, const struct st_held *file, struct stoker_error *err);
void st_zip_close(struct st_zip *zip); /* safe after a failed open */

/* Finds a member's packed bytes in its `room` bytes from its local header on. */
int st_zip_find(const struct st_zip *zip, const struct st_zip_member *member, struct st_bytes room,
                struct st_bytes *packed, struct stoker_error *err);
/* Unpacks into `out`, which has room for the member's size (stored members are copied), and verifies the
 * checksum. Names the member in messages. */
int st_zip_unpack(const struct st_zip *zip, const struct st_zip_member *member, struct st_bytes packed,
                  uint8_t *out, struct stoker_error *err);
/* The same without unpacking: for stored members, where they lie. */
int st_zip_verify(const struct st_zip *zip, const struct st_zip_member *member, struct st_bytes bytes,
                  struct stoker_error *err);
/* Whether this build can read the member at all: the method, encryption, and a size that is possible. */
int st_zip_readable(const struct st_zip *zip, const struct st_zip_member *member,
                    struct stoker_error *err);

static inline const char *st_zip_name(const struct st_zip *zip, const struct st_zip_member *member)
{
    return zip->text + member->name;
}

#endif
