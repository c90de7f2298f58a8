/* directory.c - reads the directory of a zip archive
 *
 * The directory is at the end of the file, followed by a record that says where it begins and a comment
 * of any length. Archives of more than 4 GiB or 65,535 members have a second such record with wider
 * numbers (zip64). If bytes were prepended to an archive, all its offsets are off by that amount.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/zip/directory.h"
#include "source/deflate/inflate.h"
#include "source/little.h"

#include <stdlib.h>
#include <string.h>

enum {
    END_SIZE = 22,
    COMMENT_MAX = 65535,
    LOCATOR_SIZE = 20,
    END64_SIZE = 56,
    ENTRY_SIZE = 46,
    LOCAL_SIZE = 30,
};
#define END_MARK      0x06054b50u
#define LOCATOR_MARK  0x07064b50u
#define END64_MARK    0x06064b50u
#define ENTRY_MARK    0x02014b50u
#define LOCAL_MARK    0x04034b50u
#define DIRECTORY_MAX (2ull << 30)

static int damaged(const struct st_held *file, const char *what, struct stoker_error *err)
{
    return st_fail(err, STOKER_ECORRUPT, "%s: %s", file->path, what);
}

/* ---- the end of the archive --------------------------------------------------------------------- */

struct directory {
    uint64_t entries, size, at; /* `at` is an offset in the file */
    uint64_t shift;             /* bytes prepended to the archive */
};

/* Reads the zip64 record, if there is one; `end` is the offset of the plain one. */
static int read_end64(const struct st_held *file, uint64_t end, struct directory *out, uint64_t *before,
                      struct stoker_error *err)
{
    uint8_t locator[LOCATOR_SIZE], record[END64_SIZE];
    *before = end;
    if (end < LOCATOR_SIZE + END64_SIZE)
        return 0;
    int rc = st_held_read(file, end - LOCATOR_SIZE, locator, sizeof locator, err);
    if (rc || st_u32(locator) != LOCATOR_MARK)
        return rc;
    /* At the stated offset or, if bytes were prepended to the archive, directly before the locator. */
    uint64_t at = st_u64(locator + 8);
    if (at > end - LOCATOR_SIZE - END64_SIZE)
        return damaged(file, "its zip64 directory record is outside the file", err);
    rc = st_held_read(file, at, record, sizeof record, err);
    if (!rc && st_u32(record) != END64_MARK) {
        at = end - LOCATOR_SIZE - END64_SIZE;
        rc = st_held_read(file, at, record, sizeof record, err);
    }
    if (rc)
        return rc;
    if (st_u32(record) != END64_MARK)
        return damaged(file, "its zip64 directory record is not where its locator says", err);
    out->entries = st_u64(record + 32);
    out->size = st_u64(record + 40);
    out->at = st_u64(record + 48);
    *before = at;
    return 0;
}

static int find_directory(const struct st_held *file, struct directory *out, struct stoker_error *err)
{
    const uint64_t tail_size = file->size < END_SIZE + COMMENT_MAX ? file->size : END_SIZE + COMMENT_MAX;
    if (file->size < END_SIZE)
        return damaged(file, "too short for a zip archive", err);
    uint8_t *tail = st_calloc(tail_size, 1);
    if (!tail)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", file->path);
    int rc = st_held_read(file, file->size - tail_size, tail, tail_size, err);
    uint64_t at = tail_size - END_SIZE + 1;
    bool found = false;
    while (!rc && !found && at--)
        found = st_u32(tail + at) == END_MARK && at + END_SIZE + st_u16(tail + at + 20) <= tail_size;
    if (!rc && !found)
        rc = damaged(file, "not a zip archive, or truncated", err);
    if (!rc)
        *out = (struct directory){st_u16(tail + at + 10), st_u32(tail + at + 12), st_u32(tail + at + 16),
                                  0};
    free(tail);
    if (rc)
        return rc;
    uint64_t before;
    rc = read_end64(file, file->size - tail_size + at, out, &before, err);
    if (rc)
        return rc;
    if (out->size > before || out->at > before - out->size)
        return damaged(file, "its directory is outside the file: it is truncated", err);
    out->shift = before - out->size - out->at;
    out->at += out->shift;
    if (out->entries > out->size / ENTRY_SIZE)
        return damaged(file, "states more members than fit into its directory", err);
    if (out->size > DIRECTORY_MAX)
        return st_fail(err, STOKER_ELIMIT, "%s: its directory has more than the limit of 2 GiB",
                       file->path);
    return 0;
}

/* ---- its entries -------------------------------------------------------------------------------- */

/* Numbers that did not fit into 32 bits are in the extra field, in this order, without the others. */
static bool widen(struct st_zip_member *member, const uint8_t *extra, uint64_t size)
{
    uint64_t *const fields[] = {&member->size, &member->packed, &member->at};
    while (size >= 4) {
        const uint64_t part = st_u16(extra + 2);
        if (part > size - 4)
            return false;
        if (st_u16(extra) == 1) {
            const uint8_t *at = extra + 4, *end = at + part;
            for (int i = 0; i < 3; i++)
                if (*fields[i] == UINT32_MAX) {
                    if (end - at < 8)
                        return false;
                    *fields[i] = st_u64(at);
                    at += 8;
                }
            return true;
        }
        extra += 4 + part;
        size -= 4 + part;
    }
    return true;
}

/* An entry in the directory: its member, its name, and its total size. */
struct entry {
    struct st_zip_member member;
    const char *name;
    uint64_t name_size, taken;
};

static bool has_mark(const uint8_t *at, uint64_t left)
{
    return left >= ENTRY_SIZE && st_u32(at) == ENTRY_MARK;
}

/* Recovers what is left of a damaged entry: its name, which extends at most to the next entry. */
static bool recover_entry(const uint8_t *at, uint64_t left, struct entry *out)
{
    const uint8_t *next = left > ENTRY_SIZE ? memmem(at + 4, left - 4, "PK\1\2", 4) : NULL;
    const uint64_t gap = next ? (uint64_t)(next - at) : left;
    if (gap <= ENTRY_SIZE)
        return false;
    *out = (struct entry){.name = (const char *)at + ENTRY_SIZE, .taken = gap};
    while (out->name_size < gap - ENTRY_SIZE && (uint8_t)out->name[out->name_size] >= 32)
        out->name_size++;
    out->member.damage = "its entry in the archive's directory is damaged";
    return out->name_size > 0;
}

static uint64_t entry_size(const uint8_t *at)
{
    return ENTRY_SIZE + st_u16(at + 28) + st_u16(at + 30) + st_u16(at + 32);
}

/* Whether an entry's lengths are right: they lead to the end, to the next entry, or to one that is
 * damaged but itself leads on. */
static bool leads_on(const uint8_t *at, uint64_t left, bool last)
{
    const uint64_t size = entry_size(at);
    if (size > left)
        return false;
    const uint8_t *next = at + size;
    left -= size;
    if (last || has_mark(next, left))
        return true;
    return has_mark(at, ENTRY_SIZE) && left >= ENTRY_SIZE && entry_size(next) <= left &&
           (entry_size(next) == left || has_mark(next + entry_size(next), left - entry_size(next)));
}

/* Reads the entry at `at`; false if there is none and nothing that could be one. */
static bool read_entry(const uint8_t *at, uint64_t left, bool last, struct entry *out)
{
    if (left < ENTRY_SIZE)
        return false;
    if (!leads_on(at, left, last))
        return recover_entry(at, left, out);
    const uint64_t name = st_u16(at + 28), extra = st_u16(at + 30);
    *out = (struct entry){
        .member = {.packed = st_u32(at + 20),
                   .size = st_u32(at + 24),
                   .at = st_u32(at + 42),
                   .crc = st_u32(at + 16),
                   .method = (uint16_t)st_u16(at + 10),
                   .encrypted = (st_u16(at + 8) & 1) != 0},
        .name = (const char *)at + ENTRY_SIZE,
        .name_size = strnlen((const char *)at + ENTRY_SIZE, name), /* up to a NUL byte, as in Python */
        .taken = entry_size(at),
    };
    if (!has_mark(at, left) || !widen(&out->member, at + ENTRY_SIZE + name, extra))
        out->member.damage = "its entry in the archive's directory is damaged";
    return true;
}

static int read_entries(struct st_zip *zip, const struct st_held *file,
                        const struct directory *directory, const uint8_t *bytes,
                        struct stoker_error *err)
{
    uint64_t at = 0, text = 0;
    for (uint64_t i = 0; i < directory->entries; i++) {
        struct entry entry;
        if (!read_entry(bytes + at, directory->size - at, i + 1 == directory->entries, &entry))
            return st_fail(err, STOKER_ECORRUPT, "%s: its directory is damaged at member %llu",
                           file->path, (unsigned long long)i);
        struct st_zip_member *member = &entry.member;
        memcpy(zip->text + text, entry.name, entry.name_size);
        zip->text[text + entry.name_size] = '\0';
        member->name = text;
        at += entry.taken;
        if (entry.name_size && entry.name[entry.name_size - 1] == '/')
            continue;
        if (!member->damage &&
            (!st_add(member->at, directory->shift, &member->at) || member->at > directory->at ||
             member->packed > directory->at - member->at))
            member->damage = "is outside the file";
        text += entry.name_size + 1;
        zip->members[zip->count++] = *member;
    }
    return 0;
}

static int by_offset(const void *a, const void *b)
{
    const struct st_zip_member *left = *(struct st_zip_member *const *)a;
    const struct st_zip_member *right = *(struct st_zip_member *const *)b;
    if (left->at != right->at)
        return left->at > right->at ? 1 : -1;
    return (left > right) - (left < right);
}

/* Whether a member begins where its entry says; `*rc` if a read fails. */
static bool has_local_header(const struct st_held *file, const struct st_zip_member *member, int *rc,
                             struct stoker_error *err)
{
    uint8_t mark[4];
    *rc = st_held_read(file, member->at, mark, sizeof mark, err);
    return !*rc && st_u32(mark) == LOCAL_MARK;
}

/* Limits each member to the start of the next: zip bombs consist of members that share bytes. Of two
 * overlapping members the damaged one is the one without a local header at its offset, otherwise the
 * first. */
static int measure_rooms(struct st_zip *zip, const struct st_held *file, uint64_t end,
                         struct stoker_error *err)
{
    struct st_zip_member **sorted = st_calloc(zip->count, sizeof *sorted);
    uint64_t count = 0;
    int rc = 0;
    if (!sorted)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", file->path);
    for (uint64_t i = 0; i < zip->count; i++)
        if (!zip->members[i].damage)
            sorted[count++] = &zip->members[i];
    qsort(sorted, count, sizeof *sorted, by_offset);
    for (uint64_t i = 0, next; i < count && !rc; i = next) {
        struct st_zip_member *member = sorted[i];
        const uint64_t least = LOCAL_SIZE + member->packed;
        next = i + 1;
        while (next < count && sorted[next]->at - member->at < least && !file->remote &&
               !has_local_header(file, sorted[next], &rc, err) && !rc)
            sorted[next++]->damage = "is not where the archive's directory says";
        const uint64_t room = (next < count ? sorted[next]->at : end) - member->at;
        /* Unused bytes may follow, but a local header's variable part is at most this long. */
        const uint64_t most = least + 2 * 65535ull;
        member->room = room < most ? room : most;
        if (room < least)
            member->damage = "overlaps what follows it in the archive";
    }
    free(sorted);
    return rc;
}

int st_zip_open(struct st_zip *zip, const struct st_held *file, struct stoker_error *err)
{
    struct directory directory = {0};
    *zip = (struct st_zip){0};
    int rc = find_directory(file, &directory, err);
    if (rc)
        return rc;
    uint8_t *bytes = malloc(directory.size ? directory.size : 1);
    zip->members = st_calloc(directory.entries, sizeof *zip->members);
    zip->text = malloc(directory.size + 1); /* an entry is longer than its name and a NUL byte */
    if (!bytes || !zip->members || !zip->text)
        rc = st_fail(err, STOKER_ENOMEM, "%s: out of memory for its directory of %llu bytes", file->path,
                     (unsigned long long)directory.size);
    if (!rc)
        rc = st_held_read(file, directory.at, bytes, directory.size, err);
    if (!rc)
        rc = read_entries(zip, file, &directory, bytes, err);
    free(bytes);
    return rc ? rc : measure_rooms(zip, file, directory.at, err);
}

void st_zip_close(struct st_zip *zip)
{
    free(zip->members);
    free(zip->text);
    *zip = (struct st_zip){0};
}

/* ---- one member --------------------------------------------------------------------------------- */

int st_zip_find(const struct st_zip *zip, const struct st_zip_member *member, struct st_bytes room,
                struct st_bytes *packed, struct stoker_error *err)
{
    /* The name and extra field of the local header may differ in length from the directory's. */
    const uint8_t *at = room.data;
    const uint64_t head = room.size >= LOCAL_SIZE && st_u32(at) == LOCAL_MARK
                              ? LOCAL_SIZE + st_u16(at + 26) + st_u16(at + 28)
                              : UINT64_MAX;
    if (head > room.size || member->packed > room.size - head)
        return st_fail(err, STOKER_ECORRUPT, "%s: is not where the archive's directory says",
                       st_zip_name(zip, member));
    *packed = (struct st_bytes){at + head, member->packed};
    return 0;
}

int st_zip_readable(const struct st_zip *zip, const struct st_zip_member *member,
                    struct stoker_error *err)
{
    const char *name = st_zip_name(zip, member);
    if (member->damage)
        return st_fail(err, STOKER_ECORRUPT, "%s: %s", name, member->damage);
    if (member->encrypted)
        return st_fail(err, STOKER_EUNSUPPORTED, "%s: is encrypted; extract it with its password first",
                       name);
    if (member->method != ST_ZIP_STORED && member->method != ST_ZIP_DEFLATED)
        return st_fail(
            err, STOKER_EUNSUPPORTED,
            "%s: is compressed with method %u; only stored and deflated members are supported", name,
            member->method);
    if (member->method == ST_ZIP_STORED ? member->size != member->packed
                                        : !st_inflate_possible(member->packed, member->size))
        return st_fail(
            err, STOKER_ECORRUPT,
            "%s: states %llu bytes, which cannot come from %llu compressed ones: its entry is damaged",
            name, (unsigned long long)member->size, (unsigned long long)member->packed);
    return 0;
}

int st_zip_verify(const struct st_zip *zip, const struct st_zip_member *member, struct st_bytes bytes,
                  struct stoker_error *err)
{
    if (st_crc32(bytes.data, bytes.size) != member->crc)
        return st_fail(err, STOKER_ECORRUPT,
                       "%s: its checksum is wrong; the archive is damaged or was replaced",
                       st_zip_name(zip, member));
    return 0;
}

int st_zip_unpack(const struct st_zip *zip, const struct st_zip_member *member, struct st_bytes packed,
                  uint8_t *out, struct stoker_error *err)
{
    if (member->method == ST_ZIP_STORED)
        memcpy(out, packed.data, packed.size);
    else if (!st_inflate(ST_WRAPPING_NONE, packed, out, member->size))
        return st_fail(err, STOKER_ECORRUPT, "%s: its deflated bytes are damaged",
                       st_zip_name(zip, member));
    return st_zip_verify(zip, member, (struct st_bytes){out, member->size}, err);
}
